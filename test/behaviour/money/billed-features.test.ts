/**
 * Features that vendors bill beyond text, at models that have their prices: held, limited, read
 * from the reply and charged by their own units.
 */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PriceUnit } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { formatUsd } from "../../../src/core/money.ts";
import { priceDefault } from "../../support/gateway.ts";
import {
  featureReplies,
  noFeatures,
  type Reported,
  type ReplyStyle,
} from "../../support/feature-replies.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { newRequestId, useGateway } from "../harness.ts";

const state: { vendor?: PlainVendor; style: ReplyStyle; reported: Reported } = {
  style: "messages",
  reported: noFeatures,
};

beforeAll(async () => {
  state.vendor = await startPlainVendor(({ body, url }) => {
    const { whole, stream } = featureReplies[state.style](state.reported);
    const isStream = body.includes('"stream":true') || url.includes("streamGenerateContent");
    return isStream
      ? { headers: { "content-type": "text/event-stream" }, body: stream }
      : { body: JSON.stringify(whole) };
  });
});
afterAll(() => state.vendor?.close());

const price = {
  ...priceDefault,
  audioInput: 10_000_000_000n,
  audioOutput: 20_000_000_000n,
  webSearch: 10_000_000n,
  webFetch: 1_000_000n,
  codeExecution: 30_000_000n,
};

const filesPrice = { ...priceDefault, fileSearch: 2_500_000n };

const vendors = {
  messages: "anthropic",
  responses: "openai",
  chat: "compatible",
  gemini: "gemini",
} as const;

const fixture = useGateway(() => {
  const origin = state.vendor?.url ?? "";
  const apiKey = "sk-features";
  const models = Object.entries(vendors).flatMap(([style, vendor]) => {
    const routes = [{ vendor, model: "vendor-model" }];
    return [
      [style, { routes, price, maxToolCalls: 4 }],
      [`${style}-files`, { routes, price: filesPrice, fileStores: ["vs_shared", "vs_manual"] }],
      [`${style}-text`, { routes }],
    ];
  });
  return {
    vendors: {
      anthropic: { baseUrl: origin, apiKey, kind: "anthropic" },
      openai: { baseUrl: `${origin}/v1`, apiKey, kind: "openai", dialects: ["responses"] },
      compatible: { baseUrl: `${origin}/v1`, apiKey, kind: "openai-compatible" },
      gemini: { baseUrl: origin, apiKey, kind: "gemini" },
    },
    models: Object.fromEntries(models) as Record<string, object>,
  };
});

async function ask(path: string, body: object, id = newRequestId()): Promise<Response> {
  const { gateway, customer } = fixture;
  return await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      "x-request-id": id,
      "x-uas-cost": "true",
    },
    body: JSON.stringify(body),
  });
}

/** The receipt of a call, and the body that its vendor got. */
async function served(path: string, body: object) {
  const id = newRequestId();
  const response = await ask(path, body, id);
  const told = await response.text();
  expect([response.status, response.status === 200 ? "" : told]).toEqual([200, ""]);
  const { callId } = await fixture.gateway.call(id);
  const { receipt } = await fixture.gateway.callLog.getCall({
    call: { case: "callId", value: callId },
  });
  if (receipt === undefined) throw new Error("no receipt");
  const sent = JSON.parse(state.vendor?.requests.at(-1)?.body ?? "{}") as Record<string, unknown>;
  return { receipt, told, sent };
}

const messages = [{ role: "user", content: "Hi" }];
const audio = { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } };
const heardMessages = [{ role: "user", content: [{ type: "text", text: "Hi" }, audio] }];
const search = { type: "web_search_20250305", name: "web_search" };
const code = { type: "code_execution_20250522", name: "code_execution" };
const fetchTool = { type: "web_fetch_20250910", name: "web_fetch" };

/**
 * A request that offers everything its style has, and the most calls of each tool that it allows.
 */
interface Door {
  readonly path: string;
  readonly vendor: ReplyStyle;
  readonly body: (limit: number) => object;
  readonly has: ReadonlySet<keyof Reported>;
  readonly limitOf: (limit: number, unit: "searches" | "fetches" | "runs") => number;
}

const doors: Record<string, Door> = {
  "messages, relayed": {
    path: "/v1/messages",
    vendor: "messages",
    body: (max_uses) => ({
      max_tokens: 64,
      messages,
      tools: [{ ...search, max_uses }, { ...fetchTool, max_uses }, code],
    }),
    has: new Set(["searches", "fetches", "runs"]),
    limitOf: (limit, unit) => (unit === "runs" ? 4 : limit),
  },
  "responses, relayed": {
    path: "/v1/responses",
    vendor: "responses",
    body: (max_tool_calls) => ({
      input: "Hi",
      max_tool_calls,
      tools: [{ type: "web_search" }, { type: "code_interpreter", container: { type: "auto" } }],
    }),
    has: new Set(["searches", "runs"]),
    limitOf: (limit) => limit,
  },
  "chat completions, relayed": {
    path: "/v1/chat/completions",
    vendor: "chat",
    body: () => ({
      messages: heardMessages,
      web_search_options: {},
      modalities: ["text", "audio"],
      audio: { voice: "alloy", format: "wav" },
    }),
    has: new Set(["searches", "heard", "spoken"]),
    limitOf: () => 4,
  },
  "responses at a vendor of messages": {
    path: "/v1/responses",
    vendor: "messages",
    body: () => ({ input: "Hi", tools: [{ type: "web_search" }] }),
    has: new Set(["searches"]),
    limitOf: () => 4,
  },
  "responses at Gemini": {
    path: "/v1/responses",
    vendor: "gemini",
    body: () => ({ input: "Hi", tools: [{ type: "web_search" }] }),
    has: new Set(["searches"]),
    limitOf: () => 4,
  },
  "audio of chat completions at Gemini": {
    path: "/v1/chat/completions",
    vendor: "gemini",
    body: () => ({ messages: heardMessages }),
    has: new Set(["heard"]),
    limitOf: () => 0,
  },
};

const counts = fc.record({
  searches: fc.nat(9),
  fetches: fc.nat(9),
  runs: fc.nat(9),
  heard: fc.nat(500),
  spoken: fc.nat(500),
  read: fc.integer({ min: 1, max: 2_000 }),
  produced: fc.integer({ min: 1, max: 60 }),
});

/** Returns the charge by the rules: each requested quantity × its price, rounded down once. */
function expectedNanos(door: Door, reported: Reported, limit: number): bigint {
  const called = (unit: "searches" | "fetches" | "runs"): number => {
    if (!door.has.has(unit)) return 0;
    // A chat completion with a search that reports none had one.
    const calls = door.vendor === "chat" ? Math.max(1, reported[unit]) : reported[unit];
    return Math.min(calls, door.limitOf(limit, unit));
  };
  const isHeard = door.has.has("heard");
  const isSpoken = door.has.has("spoken");
  const heard = ["chat", "gemini"].includes(door.vendor) ? reported.heard : 0;
  const spoken = ["chat", "gemini"].includes(door.vendor) ? reported.spoken : 0;
  const { input = 0n, output = 0n } = price;
  const tokens =
    BigInt(reported.read) * input +
    BigInt(heard) * (isHeard ? price.audioInput : input) +
    BigInt(reported.produced) * output +
    BigInt(spoken) * (isSpoken ? price.audioOutput : output);
  const tools =
    BigInt(called("searches")) * price.webSearch +
    BigInt(called("fetches")) * price.webFetch +
    BigInt(called("runs")) * price.codeExecution;
  return tokens / 1_000_000n + tools;
}

describe.each(Object.entries(doors))("%s", (_name, door) => {
  it.each([false, true])(
    "the receipt equals the charge and Σ units × price, within the request, whatever a vendor reports (streamed: %s)",
    async (stream) => {
      state.style = door.vendor;
      await fc.assert(
        fc.asyncProperty(counts, fc.integer({ min: 1, max: 6 }), async (reported, limit) => {
          state.reported = reported;
          const body = { ...door.body(limit), model: door.vendor, stream };
          const { receipt, told } = await served(door.path, body);
          const expected = expectedNanos(door, reported, limit);
          expect(receipt.amount?.amountNanos).toBe(expected);
          expect(receipt.recomputed).toEqual(receipt.amount);
          const [charge] = receipt.entries;
          expect(charge?.amount?.amountNanos).toBe(-expected);
          // R-TXT-12: the reply says the same.
          expect(told).toContain(`"cost":${formatUsd(expected)}`);
          // The first hold covers the tools, so nothing had to grow for them.
          expect(receipt.holds[0]?.held?.amountNanos).toBeGreaterThanOrEqual(
            expectedNanos(door, { ...reported, read: 0, heard: 0, produced: 0, spoken: 0 }, limit),
          );
        }),
        { numRuns: 12 },
      );
    },
  );
});

it("a limit that the request leaves out is sent to the vendor, in its own words", async () => {
  state.reported = noFeatures;
  state.style = "messages";
  const tools = [
    search,
    { name: "f", input_schema: { type: "object" } },
    { ...fetchTool, max_uses: null },
  ];
  const own = await served("/v1/messages", { model: "messages", max_tokens: 9, messages, tools });
  expect(own.sent["tools"]).toEqual([
    { max_uses: 4, ...search },
    tools[1],
    { ...fetchTool, max_uses: 4 },
  ]);
  const body = { input: "Hi", tools: [{ type: "web_search" }] };
  const crossed = await served("/v1/responses", { ...body, model: "messages" });
  expect(crossed.sent["tools"]).toMatchObject([{ type: "web_search_20250305", max_uses: 4 }]);
  state.style = "responses";
  const responses = await served("/v1/responses", { ...body, model: "responses" });
  expect(responses.sent).toMatchObject({ max_tool_calls: 4, tools: body.tools });
  const named = { ...body, max_tool_calls: 2 };
  const limited = await served("/v1/responses", { ...named, model: "responses" });
  expect(limited.sent["max_tool_calls"]).toBe(2);
});

describe("a search of files", () => {
  const model = "responses-files";
  const fileSearch = { type: "file_search", vector_store_ids: ["vs_shared"] };

  it("a search of a store that the operator shares is held, limited and charged by the call", async () => {
    state.style = "responses";
    state.reported = { ...noFeatures, filed: 3 };
    const tools = [{ ...fileSearch, max_num_results: 5 }];
    const body = { model, input: "Hi", tools, max_output_tokens: 16, max_tool_calls: 2 };
    const { receipt, sent } = await served("/v1/responses", body);
    expect(sent["tools"]).toEqual(tools);
    expect(receipt.lines.at(-1)).toMatchObject({
      unit: PriceUnit.FILE_SEARCH,
      quantity: "2",
      price: "0.0025",
    });
    // Two searches, and 800 tokens for each of their five results.
    const held = receipt.holds[0]?.held?.amountNanos ?? 0n;
    const least = 2n * 2_500_000n + 2n * 5n * 800n * 250n;
    expect(held).toBeGreaterThanOrEqual(least);
    expect(held).toBeLessThan(least + 100_000n);
  });

  it("a search of any other store is refused before the vendor is called, because it may belong to another customer", async () => {
    const before = state.vendor?.requests.length;
    for (const [tool, param] of [
      [{ ...fileSearch, vector_store_ids: ["vs_theirs"] }, "tools[0].vector_store_ids"],
      [
        { ...fileSearch, vector_store_ids: ["vs_shared", "vs_theirs"] },
        "tools[0].vector_store_ids",
      ],
      [{ ...fileSearch, vector_store_ids: ["VS_SHARED"] }, "tools[0].vector_store_ids"],
      [{ ...fileSearch, vector_store_ids: "vs_shared" }, "tools[0].vector_store_ids"],
      [{ ...fileSearch, vector_store_ids: { 0: "vs_shared" } }, "tools[0].vector_store_ids"],
      [{ type: "web_search", vector_store_ids: ["vs_shared"] }, "tools[0].vector_store_ids"],
      [{ ...fileSearch, Vector_Store_Ids: ["vs_theirs"] }, "tools[0].Vector_Store_Ids"],
      [{ ...fileSearch, max_num_results: -1 }, "tools[0].max_num_results"],
    ] as const) {
      const response = await ask("/v1/responses", { model, input: "Hi", tools: [tool] });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { param } });
    }
    expect(state.vendor?.requests.length).toBe(before);
  });

  it("a search of files is refused if the model has no price for it, for every store", async () => {
    const asked = { model: "responses", input: "Hi", tools: [{ type: "file_search" }] };
    const response = await ask("/v1/responses", asked);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "tools[0].type" } });
  });
});

it("a search without a request is not charged, and a vendor that searches more than it may is not paid by the customer", async () => {
  state.style = "messages";
  state.reported = { ...noFeatures, searches: 1_000, runs: 50 };
  const plain = await served("/v1/messages", { model: "messages", max_tokens: 64, messages });
  expect(plain.receipt.lines.map(({ unit }) => unit)).toEqual([PriceUnit.INPUT, PriceUnit.OUTPUT]);
  const tools = [{ ...search, max_uses: 2 }];
  const once = await served("/v1/messages", { model: "messages", max_tokens: 64, messages, tools });
  const line = once.receipt.lines.find(({ unit }) => unit === PriceUnit.WEB_SEARCH);
  expect(line).toMatchObject({ quantity: "2", price: "0.01", per: 1, amount: "0.02" });
});

it.each([
  [
    "/v1/messages",
    "messages",
    { max_tokens: 9, messages, tools: [search] },
    /tools\[0\]\.type.*tools\.web_search/,
  ],
  [
    "/v1/responses",
    "responses",
    { input: "x", tools: [{ type: "web_search" }] },
    /tools\[0\]\.type.*tools\.web_search/,
  ],
  [
    "/v1/chat/completions",
    "chat",
    { messages, web_search_options: {} },
    /web_search_options.*tools\.web_search/,
  ],
  [
    "/v1/chat/completions",
    "chat",
    { messages: heardMessages },
    /messages\[0\]\.content\[1\]\.input_audio.*audio_input/,
  ],
  [
    "/v1/chat/completions",
    "chat",
    { messages, modalities: ["text", "audio"] },
    /modalities\[1\].*audio_output/,
  ],
  ["/v1/chat/completions", "gemini", { messages: heardMessages }, /audio_input/],
  ["/v1/responses", "gemini", { input: "x", tools: [{ type: "web_search" }] }, /tools\.web_search/],
])(
  "without a price, %s at a model of %s is a 400 that names member and unit",
  async (path, model, body, message) => {
    const asked = state.vendor?.requests.length;
    const response = await ask(path, { ...body, model: `${model}-text` });
    const told = (await response.text()).replaceAll('\\"', '"');
    expect([response.status, told]).toEqual([400, expect.stringMatching(message)]);
    expect(state.vendor?.requests.length).toBe(asked);
  },
);

it.each([
  [
    "/v1/messages",
    { max_tokens: 9, messages, tools: [{ ...search, max_uses: 0.5 }] },
    "tools[0].max_uses",
  ],
  [
    "/v1/responses",
    { input: "x", max_tool_calls: "3", tools: [{ type: "web_search" }] },
    "max_tool_calls",
  ],
])("a limit of calls that is no whole number is refused: %s %j", async (path, body, param) => {
  const model = path === "/v1/messages" ? "messages" : "responses";
  const response = await ask(path, { ...body, model });
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(param)]);
});

it("a typed caller's tool of the vendor is limited and charged like in every style", async () => {
  state.style = "messages";
  state.reported = { ...noFeatures, searches: 9 };
  const requestId = newRequestId();
  const transport = createConnectTransport({ baseUrl: fixture.gateway.url, httpVersion: "1.1" });
  const tool = { dialect: Dialect.MESSAGES, type: search.type, json: JSON.stringify(search) };
  await createClient(InferenceService, transport).generate(
    {
      generation: {
        model: "messages",
        conversation: {
          turns: [{ role: Role.USER, parts: [{ kind: { case: "text", value: { text: "Hi" } } }] }],
          tools: [{ kind: { case: "opaque", value: tool } }],
        },
      },
    },
    {
      headers: {
        authorization: `Bearer ${fixture.customer.key}`,
        "x-request-id": requestId,
      },
    },
  );
  const { usage, cost } = await fixture.gateway.call(requestId);
  expect(usage).toMatchObject({ webSearches: 4 });
  expect(cost?.amountNanos).toBe(100n * 250n + 20n * 2_000n + 4n * price.webSearch);
  const sent = JSON.parse(state.vendor?.requests.at(-1)?.body ?? "") as { tools: unknown };
  expect(sent.tools).toEqual([{ max_uses: 4, ...search }]);
});

it("a background response holds and is charged for the tools that it runs", async () => {
  state.style = "responses";
  state.reported = { ...noFeatures, searches: 3, runs: 1 };
  const tools = [{ type: "web_search" }];
  const body = { model: "responses", input: "Hi", background: true, tools };
  const begun = (await (await ask("/v1/responses", body)).json()) as { id: string };
  const { gateway, customer } = fixture;
  const statusOf = async (): Promise<string> => {
    const found = await fetch(`${gateway.url}/v1/responses/${begun.id}`, {
      headers: { authorization: `Bearer ${customer.key}` },
    });
    return ((await found.json()) as { status: string }).status;
  };
  await expect.poll(statusOf).toBe("completed");
  const { calls } = await gateway.callLog.listCalls({ pageSize: 1 });
  expect(calls[0]?.usage).toMatchObject({ webSearches: 3 });
  expect(calls[0]?.cost?.amountNanos).toBe(100n * 250n + 20n * 2_000n + 3n * price.webSearch);
  expect(calls[0]?.held?.amountNanos).toBeGreaterThanOrEqual(4n * price.webSearch);
});
