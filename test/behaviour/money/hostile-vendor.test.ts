/**
 * R-MON-12: whatever a vendor generates, reports or omits, no client gets much more than it pays
 * for, in every style, as whole replies and as streams. No customer pays more than the balance.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { bearer } from "../rpc/harness.ts";
import { priceDefault } from "../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { newRequestId, styleVendors, useGateway } from "../harness.ts";

type Style = "chat" | "responses" | "messages" | "gemini";

/** The vendor's report of its usage. */
interface Said {
  readonly input: unknown;
  readonly output: unknown;
}

const state: {
  vendor?: PlainVendor;
  style: Style;
  text: string;
  said: readonly Said[];
  /** Number of pieces that are streamed one by one; the rest arrives in one event. */
  pieces: number;
} = { style: "chat", text: "", said: [], pieces: Number.POSITIVE_INFINITY };

/** A piece of a stream: 16 bytes, of which JSON escapes nothing. */
const piece = "go on and on :) ";

/** A reply of this text, streamed in pieces, whose usage is said as often as there is one. */
type Reply = (text: string, said: readonly Said[]) => { whole: object; events: readonly object[] };

const usageOf: Record<Style, (said: Said) => object> = {
  chat: ({ input, output }) => ({ prompt_tokens: input, completion_tokens: output }),
  responses: ({ input, output }) => ({ input_tokens: input, output_tokens: output }),
  messages: ({ input, output }) => ({ input_tokens: input, output_tokens: output }),
  gemini: ({ input, output }) => ({ promptTokenCount: input, candidatesTokenCount: output }),
};

function piecesOf(text: string): readonly string[] {
  const { pieces } = state;
  const all = text.match(new RegExp(`.{1,${piece.length}}`, "gs")) ?? [];
  return all.length <= pieces ? all : [...all.slice(0, pieces), all.slice(pieces).join("")];
}

const replies: Record<Style, Reply> = {
  chat(text, said) {
    const head = { id: "chatcmpl-1", created: 1, model: "m" };
    const chunk = { ...head, object: "chat.completion.chunk" };
    const message = { role: "assistant", content: text };
    const usages = said.map(usageOf.chat);
    return {
      whole: {
        ...head,
        object: "chat.completion",
        choices: [{ index: 0, finish_reason: "stop", message }],
        usage: usages.at(-1),
      },
      events: [
        ...piecesOf(text).map((content) => ({
          ...chunk,
          choices: [{ index: 0, delta: { role: "assistant", content } }],
        })),
        { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
        ...usages.map((usage) => ({ ...chunk, choices: [], usage })),
      ],
    };
  },
  responses(text, said) {
    const item = { type: "message", id: "msg_1", role: "assistant", status: "completed" };
    const content = [{ type: "output_text", text, annotations: [] }];
    const response = { id: "resp_1", object: "response", model: "m", status: "completed" };
    const usages = said.map(usageOf.responses);
    const done = { ...response, output: [{ ...item, content }], usage: usages.at(-1) ?? null };
    const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
    return {
      whole: done,
      events: [
        { type: "response.created", response: { ...done, status: "in_progress", output: [] } },
        { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
        {
          type: "response.content_part.added",
          ...place,
          part: { type: "output_text", text: "", annotations: [] },
        },
        ...piecesOf(text).map((delta) => ({
          type: "response.output_text.delta",
          ...place,
          delta,
        })),
        { type: "response.output_item.done", output_index: 0, item: { ...item, content } },
        { type: "response.completed", response: done },
      ],
    };
  },
  messages(text, said) {
    const message = { id: "msg_1", type: "message", role: "assistant", model: "m" };
    const usages = said.map(usageOf.messages);
    const end = { stop_reason: "end_turn", stop_sequence: null };
    return {
      whole: {
        ...message,
        content: [{ type: "text", text }],
        ...end,
        usage: usages.at(-1) ?? null,
      },
      events: [
        {
          type: "message_start",
          message: { ...message, content: [], stop_reason: null, usage: usages[0] ?? null },
        },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        ...piecesOf(text).map((part) => ({
          type: "content_block_delta",
          index: 0,
          delta: { type: "text_delta", text: part },
        })),
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: end, usage: usages.at(-1) ?? null },
        { type: "message_stop" },
      ],
    };
  },
  gemini(text, said) {
    const partOf = (part: string) => ({
      candidates: [{ index: 0, content: { role: "model", parts: [{ text: part }] } }],
    });
    const usages = said.map(usageOf.gemini);
    const finished = { candidates: [{ index: 0, finishReason: "STOP" }] };
    return {
      whole: {
        candidates: [
          { index: 0, content: { role: "model", parts: [{ text }] }, finishReason: "STOP" },
        ],
        usageMetadata: usages.at(-1),
      },
      events: [
        ...piecesOf(text).map(partOf),
        ...(usages.length === 0 ? [finished] : []),
        ...usages.map((usageMetadata) => ({ ...finished, usageMetadata })),
      ],
    };
  },
};

/** Form of a reply: whole, as events, or as an array of events. */
type Form = "whole" | "events" | "array";

function writeReply(form: Form): string {
  const { whole, events } = replies[state.style](state.text, state.said);
  if (form === "whole") return JSON.stringify(whole);
  if (form === "array") return `[${events.map((event) => JSON.stringify(event)).join(",\r\n")}]`;
  const frames = events.map((event) => {
    const type = "type" in event ? `event: ${String(event.type)}\n` : "";
    return `${type}data: ${JSON.stringify(event)}\n\n`;
  });
  return frames.join("") + (state.style === "chat" ? "data: [DONE]\n\n" : "");
}

/** The last reply that was written: twenty calls at once get the same. */
const written = { key: "", body: "" };

function replyAs(form: Form): string {
  const { style, text, said, pieces } = state;
  const key = JSON.stringify([form, style, text, said, String(pieces)]);
  if (written.key !== key) Object.assign(written, { key, body: writeReply(form) });
  return written.body;
}

beforeAll(async () => {
  state.vendor = await startPlainVendor(({ body, url }) => {
    const isGemini = url.includes("streamGenerateContent");
    if (isGemini && !url.includes("alt=sse")) return { body: replyAs("array") };
    if (!isGemini && !body.includes('"stream":true')) return { body: replyAs("whole") };
    return { headers: { "content-type": "text/event-stream" }, body: replyAs("events") };
  });
});
afterAll(() => state.vendor?.close());

const fixture = useGateway(() => {
  const vendors = styleVendors(state.vendor?.url ?? "");
  return {
    vendors,
    // A route that ignores a limit is marked: each test has its own.
    models: Object.fromEntries([
      ...Object.keys(vendors).flatMap((style) =>
        modelNames().map((model) => [
          `${style} ${model}`,
          { routes: [{ vendor: style, model }], maxOutputTokens: 8_192 },
        ]),
      ),
      ...waysAtOnce.flatMap((way) =>
        [0, 20].map((pieces) => {
          const model = nameOf(way, pieces);
          return [model, { routes: [{ vendor: way[1], model }], maxOutputTokens: 8_192 }];
        }),
      ),
    ]),
  };
});

const native = (query: string) => (model: string) =>
  `/gemini/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent${query}`;
const paths = {
  chat: () => "/v1/chat/completions",
  responses: () => "/v1/responses",
  messages: () => "/v1/messages",
  events: native("?alt=sse"),
  array: native(""),
} as const;
type Caller = keyof typeof paths;

/** A request for one token. */
function bodyOf(caller: Caller, model: string, stream: boolean): object {
  const input = "Say hello.";
  if (caller === "events" || caller === "array") {
    return { contents: [{ parts: [{ text: input }] }], generationConfig: { maxOutputTokens: 1 } };
  }
  if (caller === "responses") return { model, input, max_output_tokens: 16, stream };
  return { model, messages: [{ role: "user", content: input }], max_tokens: 1, stream };
}

async function ask(
  caller: Caller,
  {
    key,
    model,
    stream,
  }: { readonly key: string; readonly model: string; readonly stream: boolean },
  id: string,
): Promise<Response> {
  const body = bodyOf(caller, model, stream);
  const headers = { ...bearer(key), "content-type": "application/json", "x-request-id": id };
  const url = `${fixture.gateway.url}${paths[caller](model)}`;
  return await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

const tokenNanos = (priceDefault.output ?? 0n) / 1_000_000n;
const balanceNanos = 10_000_000n;
const longText = piece.repeat(1_000);
/** Charge of an estimate. */
const longTokens = BigInt(longText.length / 4);
/**
 * The most that a stream delivers beyond its hold: the slack of a small limit, for tokens that are
 * longer than assumed.
 */
const slackTokens = 64;
const slackNanos = BigInt(slackTokens) * tokenNanos;

const ways: readonly (readonly [Caller, Style])[] = [
  ["chat", "chat"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["chat", "messages"],
  ["messages", "chat"],
  ["responses", "gemini"],
];

const sayings: readonly (readonly [string, readonly Said[]])[] = [
  ["nothing", []],
  ["null", [{ input: null, output: null }]],
  ["negative figures", [{ input: -5, output: -4_000 }]],
  ["fractions", [{ input: 1.5, output: 0.5 }]],
  ["words", [{ input: "some", output: "a few" }]],
  ["2^53", [{ input: 2 ** 53, output: 2 ** 53 }]],
  ["4,000 tokens", [{ input: 11, output: 4_000 }]],
  ["4,000 tokens of input", [{ input: 40_000, output: 1 }]],
  [
    "4,000 tokens twice",
    [
      { input: 11, output: 4_000 },
      { input: 11, output: 4_000 },
    ],
  ],
];

/** The vendors' names of models, one for each test of a way. */
function modelNames(): readonly string[] {
  return ways.flatMap(([caller]) =>
    sayings.flatMap(([what]) => [`${what}, whole, ${caller}`, `${what}, streamed, ${caller}`]),
  );
}

/** The model of a vendor that streams so many pieces, and then the rest at once. */
function nameOf([caller, style]: readonly [Caller, Style], pieces: number): string {
  return `${caller}-from-${style}-after-${pieces}`;
}

const waysAtOnce: readonly (readonly [Caller, Style])[] = [
  ...ways,
  ["chat", "responses"],
  ["chat", "gemini"],
  ["responses", "messages"],
  ["messages", "gemini"],
  ["events", "gemini"],
  ["array", "gemini"],
];

/** End of a reply that reached its limit. */
const limitEnds: Record<Caller, string> = {
  chat: '"finish_reason":"length"',
  responses: '"status":"incomplete"',
  messages: '"stop_reason":"max_tokens"',
  events: '"finishReason":"MAX_TOKENS"',
  array: '"finishReason":"MAX_TOKENS"',
};

describe.each(ways)(
  "20 calls for one token, in all worth 0.01 USD: %s from %s",
  (caller, style) => {
    const callAll = async (model: string, stream: boolean) => {
      const { key, accountId } = await fixture.gateway.customer({ balanceNanos });
      const texts = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const id = newRequestId();
          const reply = await ask(caller, { key, model, stream }, id);
          const text = await reply.text();
          // Of many calls that were refused, some share a record.
          if (reply.status === 200) await fixture.gateway.call(id);
          else expect(reply.status).toBe(402);
          return reply.status === 200 ? text : "";
        }),
      );
      const { balance } = await fixture.gateway.money(accountId);
      return { texts: texts.filter((text) => text !== ""), paidNanos: balanceNanos - balance };
    };

    it.each(sayings)(
      "a whole reply is delivered once at most, where its vendor says %s",
      async (what, said) => {
        Object.assign(state, { style, text: longText, said, pieces: Number.POSITIVE_INFINITY });
        const { texts, paidNanos } = await callAll(`${style} ${what}, whole, ${caller}`, false);
        expect(texts.length).toBeLessThanOrEqual(1);
        expect(paidNanos).toBeGreaterThanOrEqual(BigInt(texts.length) * longTokens * tokenNanos);
      },
    );

    it.each(sayings)(
      "streams end where the balance does, where their vendor says %s",
      async (what, said) => {
        Object.assign(state, { style, text: longText, said, pieces: Number.POSITIVE_INFINITY });
        const { texts, paidNanos } = await callAll(`${style} ${what}, streamed, ${caller}`, true);
        // In the style of responses, the events that end a part repeat its text.
        const member = caller === "responses" ? '"delta"' : '"(?:content|text)"';
        const deltas = texts.join("").match(new RegExp(`${member}:"[^"]*go on and on`, "g")) ?? [];
        const pieces = deltas.length;
        expect(pieces).toBeGreaterThan(0);
        const servedNanos = (BigInt(pieces * piece.length) * tokenNanos) / 4n;
        expect(servedNanos).toBeLessThanOrEqual(paidNanos + BigInt(texts.length) * slackNanos);
      },
    );
  },
);

describe.each(waysAtOnce)(
  "8 calls of a key limited to 0.01 USD, whose vendor sends its text in one event: %s from %s",
  (caller, style) => {
    it.each([0, 20])(
      "get no more than the limit in all, where %i pieces came before it",
      async (pieces) => {
        Object.assign(state, { style, text: piece.repeat(1_500), said: [], pieces });
        const model = nameOf([caller, style], pieces);
        const { key, accountId } = await fixture.gateway.customer({ keyLimitNanos: balanceNanos });
        const before = await fixture.gateway.money(accountId);
        const ended = await Promise.all(
          Array.from({ length: 8 }, async () => {
            const id = newRequestId();
            const reply = await ask(caller, { key, model, stream: true }, id);
            return { status: reply.status, text: await reply.text(), id };
          }),
        );
        let paidNanos = 0n;
        let servedNanos = 0n;
        for (const { status, text, id } of ended) {
          expect(status).toBe(200);
          expect(text).toContain(limitEnds[caller]);
          const { ending, errorCode, cost, usageSource } = await fixture.gateway.call(id);
          expect([ending, errorCode]).toEqual([CallEnding.OUT_OF_BALANCE, "insufficient_balance"]);
          expect(usageSource).not.toBe(UsageSource.UPSTREAM);
          paidNanos += cost?.amountNanos ?? 0n;
          const deltas = text.match(/"(?:delta|content|text)":"go on and on[^"]*/g) ?? [];
          const longest = Math.max(0, ...deltas.map((delta) => delta.length));
          expect(longest).toBeLessThan(8 * slackTokens);
          const delivered = text.match(/"(?:delta|content|text)":"go on and on :\) "/g) ?? [];
          servedNanos += (BigInt(delivered.length * piece.length) * tokenNanos) / 4n;
        }
        expect(before.balance - (await fixture.gateway.money(accountId)).balance).toBe(paidNanos);
        expect(servedNanos).toBeLessThanOrEqual(paidNanos + 8n * slackNanos);
        if (pieces > 0) expect(paidNanos).toBeGreaterThan(0n);
      },
    );

    it("get it where they can pay for it", async () => {
      Object.assign(state, { style, text: piece.repeat(1_500), said: [], pieces: 0 });
      const { key } = await fixture.gateway.customer();
      const id = newRequestId();
      const reply = await ask(caller, { key, model: nameOf([caller, style], 0), stream: true }, id);
      expect((await reply.text()).includes(state.text)).toBe(true);
      const { ending, usage } = await fixture.gateway.call(id);
      expect([ending, usage?.outputTokens]).toEqual([CallEnding.COMPLETED, 6_000]);
    });
  },
);

it.each(ways)(
  "a vendor that reports 20,000,000 tokens of input is not paid for them, and raises an alarm that names the call: %s from %s",
  async (caller, style) => {
    const said = [{ input: 20_000_000, output: 1 }];
    const model = `${style} nothing, whole, ${caller}`;
    for (const stream of [false, true]) {
      Object.assign(state, { style, text: "Hello", said, pieces: Number.POSITIVE_INFINITY });
      const { key } = await fixture.gateway.customer();
      const id = newRequestId();
      const reply = await ask(caller, { key, model, stream }, id);
      const text = await reply.text();
      expect([reply.status, text.includes("Hello")]).toEqual([200, true]);
      const { usage, usageSource, vendor, callId } = await fixture.gateway.call(id);
      // A translated reply has the figures of the charge; a relayed one those of its vendor
      // (R-TXT-4).
      const [, told] = [...text.matchAll(/"(?:input|prompt)_tokens":(\d+)/g)].at(-1) ?? [];
      if (caller !== style) expect(text).not.toContain("20000000");
      if (caller !== style && told !== undefined) expect(Number(told)).toBe(usage?.inputTokens);
      if (caller === style && told !== undefined) expect(Number(told)).toBe(20_000_000);
      // Only what the request can be is charged (R-MON-15).
      expect([(usage?.inputTokens ?? 0) < 5_000, usageSource]).toEqual([
        true,
        UsageSource.UPSTREAM,
      ]);
      const alarm = fixture.gateway.log.find(
        (line) => line.includes(`"callId":"${callId}"`) && line.includes("more than the request"),
      );
      expect(JSON.parse(alarm ?? "{}")).toMatchObject({
        vendor,
        inputTokens: 20_000_000,
      });
      const metrics = await (await fetch(`${fixture.gateway.internalUrl}/metrics`)).text();
      expect(metrics).toContain(
        `uas_upstream_alarms_total{vendor="${vendor}",reason="usage_implausible"}`,
      );
      expect(metrics).toMatch(/uas_platform_loss_nanos_total\{reason="implausible"\} [1-9]/);
    }
  },
);

it.each(ways)(
  "a figure above the limit of a request that nothing shows is charged as the limit, also for the account's next calls: %s from %s",
  async (caller, style) => {
    const said = [{ input: 10, output: 2_000_000 }];
    const model = `${style} nothing, whole, ${caller}`;
    Object.assign(state, { style, text: "Hello", said, pieces: Number.POSITIVE_INFINITY });
    const { key } = await fixture.gateway.customer();
    const charged: (number | undefined)[] = [];
    for (const stream of [true, true, false]) {
      const id = newRequestId();
      await (await ask(caller, { key, model, stream }, id)).text();
      charged.push((await fixture.gateway.call(id)).usage?.outputTokens);
    }
    expect(charged).toEqual([charged[0], charged[0], charged[0]]);
    // The limit is 1 or 16, and the text has 2.
    expect(charged[0]).toBeLessThanOrEqual(16);
  },
);
