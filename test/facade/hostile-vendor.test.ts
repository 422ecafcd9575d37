/**
 * R-MON-12: whatever a vendor makes, says or keeps to itself, nobody gets much more than is paid for, in every style, as
 * whole replies and as streams. No customer pays more than there is.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readBytesMin } from "../../src/inference/pipeline/reply.ts";
import { bearer } from "../rpc/harness.ts";
import { priceDefault } from "../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../support/plain-vendor.ts";
import { newRequestId, useGateway } from "./harness.ts";

type Style = "chat" | "responses" | "messages" | "gemini";

/** What the vendor says of its usage. */
interface Said {
  readonly input: unknown;
  readonly output: unknown;
}

const state: { vendor?: PlainVendor; style: Style; text: string; said: readonly Said[] } = {
  style: "chat",
  text: "",
  said: [],
};

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
  return text.match(new RegExp(`.{1,${piece.length}}`, "gs")) ?? [];
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

beforeAll(async () => {
  state.vendor = await startPlainVendor(({ body, url }) => {
    const { whole, events } = replies[state.style](state.text, state.said);
    const isStream = body.includes('"stream":true') || url.includes("streamGenerateContent");
    if (!isStream) return { body: JSON.stringify(whole) };
    const frames = events.map((event) => {
      const type = "type" in event ? `event: ${String(event.type)}\n` : "";
      return `${type}data: ${JSON.stringify(event)}\n\n`;
    });
    const end = state.style === "chat" ? "data: [DONE]\n\n" : "";
    return { headers: { "content-type": "text/event-stream" }, body: frames.join("") + end };
  });
});
afterAll(() => state.vendor?.close());

const kinds = {
  chat: { kind: "openai-compatible", path: "/v1" },
  responses: { kind: "openai", path: "/v1", dialects: ["responses"] },
  messages: { kind: "anthropic", path: "" },
  gemini: { kind: "gemini", path: "" },
} as const;

const fixture = useGateway(() => {
  const origin = state.vendor?.url ?? "";
  return {
    vendors: Object.fromEntries(
      Object.entries(kinds).map(([style, { path, ...kind }]) => [
        style,
        { baseUrl: `${origin}${path}`, apiKey: "sk-hostile", ...kind },
      ]),
    ),
    // A route that ignores a limit is marked: each test has its own.
    models: Object.fromEntries(
      Object.keys(kinds).flatMap((style) =>
        modelNames().map((model) => [
          `${style} ${model}`,
          { routes: [{ vendor: style, model }], maxOutputTokens: 8_192 },
        ]),
      ),
    ),
  };
});

const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;
type Caller = keyof typeof paths;

/** A request for one token. */
function bodyOf(caller: Caller, model: string, stream: boolean): object {
  const input = "Say hello.";
  if (caller === "responses") return { model, input, max_output_tokens: 16, stream };
  return { model, messages: [{ role: "user", content: input }], max_tokens: 1, stream };
}

async function ask(caller: Caller, key: string, body: object, id: string): Promise<Response> {
  const headers = { ...bearer(key), "content-type": "application/json", "x-request-id": id };
  const url = `${fixture.gateway.url}${paths[caller]}`;
  return await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

const tokenNanos = (priceDefault.output ?? 0n) / 1_000_000n;
const balanceNanos = 10_000_000n;
const longText = piece.repeat(1_000);
/** As it is charged where nobody has counted. */
const longTokens = BigInt(longText.length / 4);
/** The most that a stream delivers beyond its hold: the slack of a small limit, and one read. The event of a piece has at
 * least 100 bytes. */
const readNanos = BigInt(Math.ceil(70 + (readBytesMin / 100) * (piece.length / 4))) * tokenNanos;

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

describe.each(ways)(
  "20 calls for one token, in all worth 0.01 USD: %s from %s",
  (caller, style) => {
    const callAll = async (model: string, stream: boolean) => {
      const { key, accountId } = await fixture.gateway.customer({ balanceNanos });
      const texts = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const id = newRequestId();
          const reply = await ask(caller, key, bodyOf(caller, model, stream), id);
          const text = await reply.text();
          await fixture.gateway.call(id);
          if (reply.status !== 200) expect(reply.status).toBe(402);
          return reply.status === 200 ? text : "";
        }),
      );
      const { balance } = await fixture.gateway.money(accountId);
      return { texts: texts.filter((text) => text !== ""), paidNanos: balanceNanos - balance };
    };

    it.each(sayings)(
      "a whole reply is delivered once at most, where its vendor says %s",
      async (what, said) => {
        Object.assign(state, { style, text: longText, said });
        const { texts, paidNanos } = await callAll(`${style} ${what}, whole, ${caller}`, false);
        expect(texts.length).toBeLessThanOrEqual(1);
        expect(paidNanos).toBeGreaterThanOrEqual(BigInt(texts.length) * longTokens * tokenNanos);
      },
    );

    it.each(sayings)(
      "streams end where the balance does, where their vendor says %s",
      async (what, said) => {
        Object.assign(state, { style, text: longText, said });
        const { texts, paidNanos } = await callAll(`${style} ${what}, streamed, ${caller}`, true);
        // The events that end a part repeat its text.
        const deltas = texts.join("").match(/"(?:delta|content|text)":"[^"]*go on and on/g) ?? [];
        const pieces = deltas.length;
        expect(pieces).toBeGreaterThan(0);
        const servedNanos = (BigInt(pieces * piece.length) * tokenNanos) / 4n;
        expect(servedNanos).toBeLessThanOrEqual(paidNanos + BigInt(texts.length) * readNanos);
      },
    );
  },
);
