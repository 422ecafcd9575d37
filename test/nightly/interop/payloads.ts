/** Payloads with everything in them that languages write differently. */
import * as fc from "fast-check";
import type { WebhookPayload } from "../../../src/webhook/payload.ts";
import type { Json } from "../../../src/webhook/safe-json.ts";

/** Texts that some language changes, or refuses. */
const oddTexts: readonly string[] = [
  "",
  "plain",
  "é ü 漢字 😀 👩‍👩‍👧",
  "e\u0301",
  'a/b\\c"d',
  "<b>&amp;</b> 'x' = y",
  "\u0000\u0001\b\f\n\r\t\u000b\u001f\u007f\u0080\u009f",
  "\u2028 and \u2029",
  "\ud800 alone \udc00",
  "\ufeff\ufffe\uffff",
  "\\u0041 \\n",
  "</script>",
  "1e400",
  "__proto__",
];

const text = fc.oneof(
  fc.constantFrom(...oddTexts),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
);

const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(-0, 1e21, 1e-7, 0.1, 2 ** 53, -(2 ** 53), 12345678.9, 100000000000000000000),
);

const name = fc.oneof(
  fc.stringMatching(/^[a-z][a-zA-Z0-9_]{0,8}$/),
  fc.constantFrom(
    "1",
    "__proto__",
    "constructor",
    "",
    "é",
    "A",
    "a-b",
    "a b",
    "event_id",
    "sequence",
  ),
);

const { value: json } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 10, depthIdentifier: "json" },
    fc.constant(null),
    fc.boolean(),
    number,
    text,
    fc.array(tie("value"), { maxLength: 3, depthIdentifier: "json" }),
    fc.dictionary(name, tie("value"), { maxKeys: 4, depthIdentifier: "json" }),
  ),
}));

const orNull = <Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> =>
  fc.option(arbitrary, { nil: null });

const tokens = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

/** Any payload. */
export const anyPayload: fc.Arbitrary<WebhookPayload> = fc.record({
  callbackId: text,
  status: fc.constantFrom("progress", "completed", "failed", "cancelled"),
  progress: fc.integer({ min: 0, max: 100 }),
  resultUrl: orNull(fc.webUrl({ withQueryParameters: true, withFragments: true })),
  resultContent: orNull(text),
  error: orNull(text),
  errorCode: orNull(fc.constantFrom("content_rejected", "upstream_error")),
  usage: fc.record({ promptTokens: tokens, completionTokens: tokens, totalTokens: tokens }),
  time: fc.date({
    noInvalidDate: true,
    min: new Date(0),
    max: new Date("9999-12-31T23:59:59.999Z"),
  }),
  facts: fc.record({
    eventId: fc.uuid(),
    modelKey: text,
    requestId: text,
    sequence: fc.integer({ min: 1, max: 1_000 }),
    taskId: fc.uuid(),
  }),
  extra: fc.dictionary(name, json, { maxKeys: 4 }),
});
