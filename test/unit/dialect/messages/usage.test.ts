import { array, assert, nat, option, property, record } from "fast-check";
import { describe, expect, it } from "vitest";
import { messages } from "../../../../src/dialect/messages/dialect.ts";

type Json = Readonly<Record<string, unknown>>;

const begun = {
  input_tokens: 1_400,
  cache_read_input_tokens: 600,
  cache_creation_input_tokens: 100,
  cache_creation: { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 40 },
  output_tokens: 1,
};
const counted = {
  inputTokens: 2_100,
  cachedInputTokens: 600,
  cacheWriteTokens: 100,
  cacheWrite1hTokens: 40,
  outputTokens: 10,
};

function frame(event: Json): Buffer {
  return Buffer.from(`event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** A stream of one text, with the usage of its start and of each later event. */
function events(start: unknown, ...later: readonly unknown[]): readonly Buffer[] {
  const text = { type: "text_delta", text: "hi" };
  return [
    frame({
      type: "message_start",
      message: { id: "msg_1", model: "m", content: [], usage: start },
    }),
    frame({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    frame({ type: "content_block_delta", index: 0, delta: text }),
    frame({ type: "content_block_stop", index: 0 }),
    ...later.map((usage) =>
      frame({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage }),
    ),
    frame({ type: "message_stop" }),
  ];
}

/** Returns the usage of a stream: as a relay charges it, and as a translation reports it. */
function usagesOf(start: unknown, ...later: readonly unknown[]) {
  const bytes = events(start, ...later);
  const relay = messages.relayStream({ publicModel: undefined, hideUsage: false, choices: 1 });
  for (const each of bytes) relay.push([each]);
  const decoder = messages.decodeStream();
  const decoded = bytes.flatMap((each) => decoder.push([each]));
  const last = decoded.at(-1)?.kind;
  return {
    relayed: relay.usage,
    decoded: decoder.usage,
    ended: last?.case === "end" ? last.value.usage : undefined,
  };
}

/** The usage of a whole reply, both ways. */
function usagesOfWhole(usage: unknown) {
  const content = [{ type: "text", text: "hi" }];
  const body = Buffer.from(JSON.stringify({ type: "message", content, usage }));
  const relayed = messages.relayReply(body, {
    publicModel: undefined,
    hideUsage: false,
    choices: 1,
  });
  return { relayed: relayed.usage, decoded: messages.decodeReply(body).usage };
}

describe("the usage of a messages stream (R-MON-8)", () => {
  it.each<[string, Json]>([
    ["leaves the input out", { output_tokens: 10 }],
    ["repeats the input as 0", { input_tokens: 0, output_tokens: 10 }],
    [
      "repeats all figures of the input as 0",
      {
        input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: 10,
      },
    ],
    [
      "repeats the input as null",
      {
        input_tokens: null,
        cache_read_input_tokens: null,
        cache_creation_input_tokens: null,
        cache_creation: null,
        output_tokens: 10,
      },
    ],
    ["has words for numbers", { input_tokens: "many", cache_creation: "some", output_tokens: 10 }],
    ["repeats the input", { ...begun, output_tokens: 10 }],
  ])("keeps the input of message_start where message_delta %s", (_how, delta) => {
    const { relayed, decoded, ended } = usagesOf(begun, delta);
    for (const usage of [relayed, decoded, ended]) expect(usage).toMatchObject(counted);
  });

  it("takes the figures of message_delta where message_start has zeros", () => {
    const zeros = Object.fromEntries(Object.keys(begun).map((name) => [name, 0]));
    const { relayed, ended } = usagesOf(zeros, { ...begun, output_tokens: 10 });
    expect(relayed).toMatchObject(counted);
    expect(ended).toMatchObject(counted);
  });

  it("takes later totals, and keeps them where an event after them has zeros", () => {
    const totals = { input_tokens: 1_500, output_tokens: 10 };
    const { relayed, ended } = usagesOf(begun, totals, { input_tokens: 0, output_tokens: 0 });
    for (const usage of [relayed, ended]) {
      expect(usage).toMatchObject({ ...counted, inputTokens: 2_200 });
    }
  });

  it("is the same relayed and translated, whatever the events have of it", () => {
    const figure = option(nat(5_000), { nil: null });
    const usage = record(
      {
        input_tokens: figure,
        cache_read_input_tokens: figure,
        cache_creation_input_tokens: figure,
        output_tokens: figure,
      },
      { requiredKeys: [] },
    );
    assert(
      property(usage, array(usage, { minLength: 1, maxLength: 3 }), (start, later) => {
        const { relayed, decoded, ended } = usagesOf(start, ...later);
        expect(decoded).toEqual(relayed);
        expect(ended).toEqual(relayed);
        const told = start.input_tokens ?? 0;
        if (relayed !== undefined && later.every(({ input_tokens: each }) => !each)) {
          expect(relayed.inputTokens).toBeGreaterThanOrEqual(told);
        }
      }),
    );
  });
});

describe("the usage of a whole messages reply", () => {
  it.each<[string, Json]>([
    ["without details", { ...begun, output_tokens: 10, cache_creation: undefined }],
    ["with nulls in place of details", { ...begun, output_tokens: 10, cache_creation: null }],
  ])("is read %s", (_how, usage) => {
    const { relayed, decoded } = usagesOfWhole(usage);
    const { cacheWrite1hTokens: _none, ...rest } = counted;
    expect(relayed).toMatchObject(rest);
    expect(decoded).toEqual(relayed);
  });

  it("counts what was written to the cache by its durations where there is no total", () => {
    const { relayed, decoded } = usagesOfWhole({
      ...begun,
      output_tokens: 10,
      cache_creation_input_tokens: null,
    });
    expect(relayed).toMatchObject(counted);
    expect(decoded).toEqual(relayed);
  });

  it("has no more tokens of an hour than tokens that were written", () => {
    const cache_creation = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 900 };
    const { relayed, decoded } = usagesOfWhole({ ...begun, cache_creation });
    expect(relayed).toMatchObject({ cacheWriteTokens: 100, cacheWrite1hTokens: 100 });
    expect(decoded).toEqual(relayed);
  });

  it.each([{ output_tokens: 10 }, { input_tokens: null, output_tokens: 10 }, { input_tokens: 9 }])(
    "is estimated where input or output is missing: %j",
    (usage) => {
      expect(usagesOfWhole(usage)).toEqual({ relayed: undefined, decoded: undefined });
    },
  );
});

describe("usage of steps", () => {
  const step = { input_tokens: 30, cache_read_input_tokens: 7, output_tokens: 4 };
  const usage = {
    ...{ input_tokens: 10, output_tokens: 5 },
    iterations: [
      { type: "message", input_tokens: 10, output_tokens: 5 },
      { type: "compaction", ...step, cache_creation_input_tokens: 3 },
      { type: "compaction", ...step },
    ],
  };
  // The vendor bills compactions, and does not include them in the totals.
  const whole = { inputTokens: 87, cachedInputTokens: 14, cacheWriteTokens: 3, outputTokens: 13 };

  it("compactions are added to the totals, and raise the alarm", () => {
    const { relayed, ended } = usagesOf(usage, usage);
    for (const each of [relayed, ended, ...Object.values(usagesOfWhole(usage))]) {
      expect(each).toMatchObject({ ...whole, unknownMembers: "iterations.compaction" });
    }
  });

  it("steps of another kind raise the alarm, and those of the reply do not", () => {
    const other = { ...usage, iterations: [{ type: "advisor_message", ...step }] };
    expect(usagesOfWhole(other).relayed?.unknownMembers).toBe("iterations.advisor_message");
    const own = { ...usage, iterations: [{ type: "message", ...step }] };
    expect(usagesOfWhole(own).relayed?.unknownMembers).toBeUndefined();
    expect(usagesOfWhole(own).relayed).toMatchObject({ inputTokens: 10, outputTokens: 5 });
  });
});
