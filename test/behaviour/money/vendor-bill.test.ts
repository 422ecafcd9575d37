/**
 * R-TXT-13: nothing that a vendor bills is free. Random requests with the members of the official
 * SDKs' types go to a vendor that serves them arbitrarily and bills them by its own price list. Its
 * bill never exceeds the charge.
 */
import type Anthropic from "@anthropic-ai/sdk";
import type { GenerateContentConfig } from "@google/genai";
import * as fc from "fast-check";
import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PriceConfig } from "../../../src/config/config.ts";
import type { ServiceTier } from "../../../src/core/service-tiers.ts";
import {
  type PlainRequest,
  type PlainVendor,
  startPlainVendor,
} from "../../support/plain-vendor.ts";
import { asksForStream, type ReplyStyle, textReply } from "../../support/text-replies.ts";
import { newRequestId, styleVendors, useGateway } from "../harness.ts";

// The vendor's price list, in nano-USD for a token or a call.

const list = {
  input: 1_000n,
  cachedInput: 100n,
  cacheWrite: 1_250n,
  cacheWrite1h: 2_000n,
  cacheWrite12h: 3_000n,
  audioInput: 7_000n,
  output: 5_000n,
  reasoning: 6_000n,
  audioOutput: 20_000n,
  imageOutput: 30_000n,
};
const callPrices = { webSearch: 10_000_000n, webFetch: 1_000_000n, codeExecution: 30_000_000n };
type TokenUnit = keyof typeof list;
type CallUnit = keyof typeof callPrices;

/** Price of each tier, in percent of the usual one. */
const tierPercents: Record<ServiceTier | "standard", bigint> = {
  ...{ standard: 100n, flex: 50n, batch: 50n },
  ...{ priority: 175n, fast: 250n, ultrafast: 400n },
};

/** Calls with more input cost twice as much. */
const longTokens = 900;

function unitPrice(unit: TokenUnit, tier: ServiceTier | "standard", isLong: boolean): bigint {
  return (list[unit] * tierPercents[tier] * (isLong ? 2n : 1n)) / 100n;
}

/** The vendor's price list as the price of a model: customers pay what the operator does. */
function priceOf(tier: ServiceTier | "standard"): PriceConfig {
  const units = (isLong: boolean) =>
    Object.fromEntries(
      Object.keys(list).map((unit) => [
        unit,
        unitPrice(unit as TokenUnit, tier, isLong) * 1_000_000n,
      ]),
    ) as Record<TokenUnit, bigint>;
  return {
    ...units(false),
    ...callPrices,
    image: undefined,
    second: undefined,
    request: undefined,
    tiers: [{ above: longTokens, ...units(true) }],
    ...(tier !== "standard" && { serviceTier: tier }),
  };
}

const wholePrice: PriceConfig = {
  ...priceOf("standard"),
  serviceTiers: {
    ...{ flex: priceOf("flex"), priority: priceOf("priority") },
    ...{ fast: priceOf("fast"), ultrafast: priceOf("ultrafast"), batch: priceOf("batch") },
  },
};
const { input, output, cachedInput, cacheWrite, reasoning, image, second, request } = wholePrice;
/** Only what every model has: the rest is refused. */
const barePrice: PriceConfig = {
  ...{ input, output, cachedInput, cacheWrite, reasoning, image, second, request },
  tiers: [
    {
      above: longTokens,
      input: 2n * (input ?? 0n),
      output: 2n * (output ?? 0n),
      cachedInput: 2n * (cachedInput ?? 0n),
      cacheWrite: 2n * (cacheWrite ?? 0n),
      reasoning: 2n * (reasoning ?? 0n),
    },
  ],
};

// The vendor: how it serves a request, and its bill.

/** Choices of the vendor. */
const choices = fc.record({
  tier: fc.nat(100),
  isSilent: fc.boolean(),
  fresh: fc.integer({ min: 1, max: 600 }),
  cached: fc.nat(300),
  written: fc.nat(300),
  isLongLived: fc.boolean(),
  heard: fc.nat(100),
  text: fc.integer({ min: 1, max: 30 }),
  reasoned: fc.nat(30),
  spoken: fc.nat(40),
  drawn: fc.nat(60),
  searches: fc.nat(5),
  fetches: fc.nat(5),
  runs: fc.nat(5),
});
type Choice = typeof choices extends fc.Arbitrary<infer Value> ? Value : never;

/** Work that a request permits. */
interface Asked {
  /** Tiers in the vendor's words, and whether it may name none. */
  readonly tiers: readonly string[];
  readonly isSilentAllowed: boolean;
  readonly hasLongCache: boolean;
  readonly hears: boolean;
  readonly speaks: boolean;
  readonly draws: boolean;
  readonly searches: number;
  readonly fetches: number;
  readonly runs: number;
}

const tierWords: Record<ReplyStyle, readonly string[]> = {
  chat: ["default", "flex", "priority", "fast"],
  responses: ["default", "flex", "priority", "fast", "ultrafast"],
  messages: ["standard", "priority", "batch"],
  gemini: ["ON_DEMAND", "ON_DEMAND_FLEX", "ON_DEMAND_PRIORITY"],
};

/**
 * Returns the tiers that a vendor may serve. A silent vendor serves the requested one or the usual
 * one.
 */
function servable(style: ReplyStyle, tier: unknown, isSilent: boolean): readonly string[] {
  const [usual = "", ...others] = tierWords[style];
  if (tier == null) return isSilent ? [usual] : [usual, ...others];
  if (tier === "auto") return [usual, ...others];
  const same = others.filter((word) => word.toLowerCase().split("_").at(-1) === tier);
  return [usual, ...same];
}

interface SentTool {
  readonly type?: string;
  readonly max_uses?: number;
  readonly google_search?: unknown;
  readonly googleSearch?: unknown;
  readonly codeExecution?: unknown;
  readonly urlContext?: unknown;
}

/** Returns the permitted work according to the vendor's body. */
function askedOf(style: ReplyStyle, json: string, { isSilent, isLongLived }: Choice): Asked {
  const body = JSON.parse(json) as Record<string, unknown>;
  const config = (body["generationConfig"] ?? {}) as Record<string, unknown>;
  const tools = (body["tools"] ?? []) as readonly SentTool[];
  const modalities = JSON.stringify(body["modalities"] ?? config["responseModalities"] ?? []);
  const has = (pattern: RegExp) => tools.find(({ type = "" }) => pattern.test(type));
  const named = (name: keyof SentTool) => tools.some((tool) => tool[name] !== undefined);
  const most = (tool: SentTool | undefined) =>
    tool === undefined ? 0 : (tool.max_uses ?? Number(body["max_tool_calls"] ?? 5));
  const isFast = body["speed"] === "fast";
  const tiers = servable(style, body["service_tier"] ?? body["serviceTier"], isSilent);
  return {
    // A request for the fast mode gets no other tier without a notice.
    tiers: isFast ? ["fast"] : tiers,
    isSilentAllowed: !isFast,
    hasLongCache: isLongLived && /"ttl":"(?:1h|12h)"/.test(json),
    hears: /input_audio|audio\/wav/.test(json),
    speaks: /audio/i.test(modalities),
    draws: /image/i.test(modalities),
    searches:
      body["web_search_options"] === undefined
        ? named("googleSearch")
          ? 5
          : most(has(/^web_search/))
        : 5,
    fetches: named("urlContext") ? 5 : most(has(/^web_fetch/)),
    runs: named("codeExecution") ? 5 : most(has(/^code_(?:execution|interpreter)/)),
  };
}

/** Counts of the vendor. */
interface Counts extends Record<TokenUnit, number>, Record<CallUnit, number> {}

function countsOf(style: ReplyStyle, asked: Asked, choice: Choice): Counts {
  const isWritten = style !== "gemini";
  const written = isWritten ? choice.written : 0;
  const long = asked.hasLongCache ? Math.floor(written / 2) : 0;
  return {
    input: choice.fresh,
    cachedInput: choice.cached,
    cacheWrite: written - long,
    cacheWrite1h: style === "messages" ? long : 0,
    cacheWrite12h: style === "messages" ? 0 : long,
    audioInput: asked.hears ? choice.heard : 0,
    output: choice.text,
    reasoning: choice.reasoned,
    audioOutput: asked.speaks ? choice.spoken : 0,
    imageOutput: asked.draws ? choice.drawn : 0,
    webSearch: Math.min(choice.searches, asked.searches),
    webFetch: Math.min(choice.fetches, asked.fetches),
    codeExecution: Math.min(choice.runs, asked.runs),
  };
}

const sum = (...numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
const inputOf = (c: Counts) =>
  sum(c.input, c.cachedInput, c.cacheWrite, c.cacheWrite1h, c.cacheWrite12h, c.audioInput);
const outputOf = (c: Counts) => sum(c.output, c.reasoning, c.audioOutput, c.imageOutput);

/** The vendor's bill in nano-USD. */
function billOf(counts: Counts, tierWord: string): bigint {
  const word = tierWord.toLowerCase().replace(/^on_demand_?/, "");
  const tier = word in tierPercents ? (word as ServiceTier) : "standard";
  const isLong = inputOf(counts) > longTokens;
  let bill = 0n;
  for (const unit of Object.keys(list) as TokenUnit[]) {
    bill += BigInt(counts[unit]) * unitPrice(unit, tier, isLong);
  }
  for (const unit of Object.keys(callPrices) as CallUnit[]) {
    bill += BigInt(counts[unit]) * callPrices[unit];
  }
  return bill;
}

const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** A reply with these counts, in the words of each vendor. */
const replies: Record<
  ReplyStyle,
  (counts: Counts, tier: string | undefined) => Omit<Parameters<typeof textReply>[1], "text">
> = {
  chat: (c, service_tier) => ({
    usage: {
      prompt_tokens: inputOf(c),
      completion_tokens: outputOf(c),
      total_tokens: inputOf(c) + outputOf(c),
      prompt_tokens_details: {
        cached_tokens: c.cachedInput,
        cache_write_tokens: c.cacheWrite + c.cacheWrite12h,
        cache_write_tokens_details: {
          ttl_30m_tokens: c.cacheWrite,
          ttl_12h_tokens: c.cacheWrite12h,
        },
        audio_tokens: c.audioInput,
      },
      completion_tokens_details: {
        reasoning_tokens: c.reasoning,
        audio_tokens: c.audioOutput,
        image_tokens: c.imageOutput,
      },
      // A single search is billed without being reported.
      ...(c.webSearch > 1 && { server_tool_use: { web_search_requests: c.webSearch } }),
    },
    members: { ...(service_tier !== undefined && { service_tier }) },
  }),
  responses: (c, service_tier) => ({
    usage: {
      input_tokens: inputOf(c),
      output_tokens: outputOf(c),
      total_tokens: inputOf(c) + outputOf(c),
      input_tokens_details: {
        cached_tokens: c.cachedInput,
        cache_write_tokens: c.cacheWrite + c.cacheWrite12h,
        cache_write_tokens_details: {
          ttl_30m_tokens: c.cacheWrite,
          ttl_12h_tokens: c.cacheWrite12h,
        },
        audio_tokens: c.audioInput,
      },
      output_tokens_details: { reasoning_tokens: c.reasoning, audio_tokens: c.audioOutput },
    },
    members: {
      ...(service_tier !== undefined && { service_tier }),
      // Discounted searches are no items of the bill.
      tool_usage: { web_search: { num_requests: c.webSearch } },
    },
    items: [
      ...many(c.webSearch + 1, (index) => ({
        ...{ type: "web_search_call", id: `ws_${index}`, status: "completed" },
        action: { type: "search", query: "x" },
      })),
      ...many(c.codeExecution, (index) => ({
        ...{ type: "code_interpreter_call", id: `ci_${index}`, status: "completed" },
        ...{ code: "1", container_id: "cntr_1", outputs: [] },
      })),
    ],
  }),
  messages: (c, tier) => ({
    usage: {
      input_tokens: c.input,
      output_tokens: outputOf(c),
      cache_read_input_tokens: c.cachedInput,
      cache_creation_input_tokens: c.cacheWrite + c.cacheWrite1h,
      cache_creation: {
        ephemeral_5m_input_tokens: c.cacheWrite,
        ephemeral_1h_input_tokens: c.cacheWrite1h,
      },
      output_tokens_details: { thinking_tokens: c.reasoning },
      server_tool_use: { web_search_requests: c.webSearch, web_fetch_requests: c.webFetch },
      ...(tier === "fast" ? { speed: "fast", service_tier: "standard" } : { service_tier: tier }),
    },
    items: many(c.codeExecution, (index) => ({
      ...{ type: "server_tool_use", id: `srvtoolu_${index}` },
      ...{ name: "code_execution", input: { code: "1" } },
    })),
  }),
  gemini: (c, trafficType) => ({
    usage: {
      promptTokenCount: inputOf(c),
      cachedContentTokenCount: c.cachedInput,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: inputOf(c) - c.audioInput },
        { modality: "AUDIO", tokenCount: c.audioInput },
      ],
      candidatesTokenCount: outputOf(c) - c.reasoning,
      candidatesTokensDetails: [
        { modality: "TEXT", tokenCount: c.output },
        { modality: "AUDIO", tokenCount: c.audioOutput },
        { modality: "IMAGE", tokenCount: c.imageOutput },
      ],
      thoughtsTokenCount: c.reasoning,
      totalTokenCount: inputOf(c) + outputOf(c),
      ...(trafficType !== undefined && { trafficType }),
    },
    members: {
      ...(c.webSearch > 0 && {
        groundingMetadata: { webSearchQueries: many(c.webSearch, (at) => `query ${at}`) },
      }),
      ...(c.webFetch > 0 && {
        urlContextMetadata: {
          urlMetadata: many(c.webFetch, (at) => ({
            retrievedUrl: `https://a.test/${at}`,
            urlRetrievalStatus: "URL_RETRIEVAL_STATUS_SUCCESS",
          })),
        },
      }),
    },
    items: many(c.codeExecution, () => ({ executableCode: { language: "PYTHON", code: "1" } })),
  }),
};

const state: { vendor?: PlainVendor; choice?: Choice; billNanos: bigint } = { billNanos: 0n };

function styleOf({ url }: PlainRequest): ReplyStyle {
  if (url.includes("/models/")) return "gemini";
  if (url.includes("/messages")) return "messages";
  return url.includes("/responses") ? "responses" : "chat";
}

beforeAll(async () => {
  state.vendor = await startPlainVendor((sent) => {
    const style = styleOf(sent);
    const { choice } = state;
    if (choice === undefined) throw new Error("nothing chosen");
    const asked = askedOf(style, sent.body, choice);
    let counts = countsOf(style, asked, choice);
    const body = JSON.parse(sent.body) as Record<string, unknown>;
    // A requested search counts at least once.
    if (style === "chat" && body["web_search_options"] !== undefined) {
      counts = { ...counts, webSearch: Math.max(1, counts.webSearch) };
    }
    const tier = asked.tiers[choice.tier % asked.tiers.length] ?? "";
    state.billNanos += billOf(counts, tier);
    const named = choice.isSilent && asked.isSilentAllowed ? undefined : tier;
    const facts = { text: "Hello", ...replies[style](counts, named) };
    return textReply(style, facts, asksForStream(sent));
  });
});
afterAll(() => state.vendor?.close());

const styles = ["chat", "responses", "messages", "gemini"] as const;

const fixture = useGateway(() => ({
  vendors: styleVendors(state.vendor?.url ?? ""),
  models: Object.fromEntries(
    styles.flatMap((style) => {
      const routes = [{ vendor: style, model: "claude-haiku-4-5" }];
      return [
        [`${style}-whole`, { routes, price: wholePrice, maxToolCalls: 5 }],
        [`${style}-bare`, { routes, price: barePrice }],
      ];
    }),
  ),
}));

// Requests, of the values that the SDKs' types allow: a new value of a type does not compile here.

type ChatParams = OpenAI.ChatCompletionCreateParams;
type ResponseParams = OpenAI.Responses.ResponseCreateParams;
type MessageParams = Anthropic.Beta.MessageCreateParams;
type Values<Type> = Record<NonNullable<Type> & string, true>;

const chatTiers = keysOf<Values<ChatParams["service_tier"]>>({
  ...{ auto: true, default: true, flex: true },
  ...{ scale: true, priority: true, fast: true },
});
const responseTiers = keysOf<Values<ResponseParams["service_tier"]>>({
  ultrafast: true,
  ...{ auto: true, default: true, flex: true },
  ...{ scale: true, priority: true, fast: true },
});
const messageTiers = keysOf<Values<MessageParams["service_tier"]>>({
  auto: true,
  standard_only: true,
});
const speeds = keysOf<Values<MessageParams["speed"]>>({ standard: true, fast: true });
const cacheLives = keysOf<Values<Anthropic.CacheControlEphemeral["ttl"]>>({
  "5m": true,
  "1h": true,
});
type CacheOptions = NonNullable<ResponseParams["prompt_cache_options"]>;
const promptLives = keysOf<Values<CacheOptions["ttl"]>>({ "30m": true, "12h": true });
const modalities = keysOf<Values<NonNullable<ChatParams["modalities"]>[number]>>({
  text: true,
  audio: true,
});

function keysOf<Value extends object>(values: Value): (keyof Value & string)[] {
  return Object.keys(values) as (keyof Value & string)[];
}

/** Some of these members, each with one of its values. */
function membersOf(members: Readonly<Record<string, readonly unknown[]>>) {
  const values = Object.entries(members).map(([name, each]) => [name, fc.constantFrom(...each)]);
  const record = fc.record(Object.fromEntries(values) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: [],
  });
  return fc.oneof({ weight: 1, arbitrary: fc.constant({}) }, { weight: 4, arbitrary: record });
}

const wav = { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } };
const said = { role: "user", content: [{ type: "text", text: "Hi" }] };
const heard = { role: "user", content: [{ type: "text", text: "Hi" }, wav] };
const controlled = (ttl: string) => ({ type: "ephemeral", ttl });

const callers: Record<string, { path: string; required: object; members: fc.Arbitrary<object> }> = {
  chat: {
    path: "/v1/chat/completions",
    required: { messages: [said], max_tokens: 1_000 },
    members: membersOf({
      service_tier: chatTiers,
      web_search_options: [{}],
      modalities: [["text"], modalities, ["text", "image"]],
      messages: [[said], [heard]],
      prompt_cache_options: promptLives.map((ttl) => ({ ttl })),
    }),
  },
  responses: {
    path: "/v1/responses",
    required: { input: "Hi", max_output_tokens: 1_000 },
    members: membersOf({
      service_tier: responseTiers,
      max_tool_calls: [1, 3],
      prompt_cache_options: promptLives.map((ttl) => ({ ttl })),
      tools: [
        [{ type: "web_search" }],
        [{ type: "code_interpreter", container: { type: "auto" } }],
        [{ type: "web_search" }, { type: "code_interpreter", container: { type: "auto" } }],
      ],
    }),
  },
  messages: {
    path: "/v1/messages",
    required: { messages: [said], max_tokens: 1_000 },
    members: membersOf({
      service_tier: messageTiers,
      speed: speeds,
      system: cacheLives.map((ttl) => [
        { type: "text", text: "Be brief", cache_control: controlled(ttl) },
      ]),
      tools: [
        [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }],
        [{ type: "web_fetch_20250910", name: "web_fetch" }],
        [{ type: "code_execution_20250522", name: "code_execution" }],
      ],
    }),
  },
  gemini: {
    path: "/gemini/v1beta/models/",
    required: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
    members: membersOf({
      serviceTier: [
        "flex",
        "standard",
        "priority",
      ] satisfies `${NonNullable<GenerateContentConfig["serviceTier"]>}`[],
      contents: [
        [{ role: "user", parts: [{ inlineData: { mimeType: "audio/wav", data: "AAAA" } }] }],
      ],
      generationConfig: [
        { responseModalities: ["TEXT", "IMAGE"], maxOutputTokens: 1_000 },
        { responseModalities: ["AUDIO"] },
      ],
      tools: [[{ googleSearch: {} }], [{ codeExecution: {} }, { urlContext: {} }]],
    }),
  },
};

const directions = styles.flatMap((vendor) => [
  ...(vendor === "gemini" ? [["gemini", vendor] as const] : []),
  ...(["chat", "responses", "messages"] as const).map((caller) => [caller, vendor] as const),
]);

describe.each(directions)("%s at a vendor of %s", (caller, vendor) => {
  it.each(["whole", "bare"])(
    "the vendor's bill never exceeds the charge, at a model with a %s price",
    async (price) => {
      const { path, required, members } = callers[caller] ?? {
        path: "",
        required: {},
        members: fc.constant({}),
      };
      let served = 0;
      await fc.assert(
        fc.asyncProperty(members, choices, fc.boolean(), async (asked, choice, stream) => {
          const id = newRequestId();
          const model = `${vendor}-${price}`;
          // Where a tier has no price, the project of the operator must not choose it.
          state.choice = price === "bare" ? { ...choice, tier: 0, isSilent: false } : choice;
          state.billNanos = 0n;
          const isNative = caller === "gemini";
          const method = stream ? "streamGenerateContent?alt=sse" : "generateContent";
          const body = isNative
            ? { ...required, ...asked }
            : { ...required, ...asked, model, stream };
          const response = await fetch(
            `${fixture.gateway.url}${path}${isNative ? `${model}:${method}` : ""}`,
            {
              method: "POST",
              headers: {
                authorization: `Bearer ${fixture.customer.key}`,
                "x-goog-api-key": fixture.customer.key,
                "content-type": "application/json",
                "x-request-id": id,
              },
              body: JSON.stringify(body),
            },
          );
          const text = await response.text();
          if (response.status === 400) {
            expect(state.billNanos).toBe(0n);
            return;
          }
          expect([response.status, text.includes("Hello")]).toEqual([200, true]);
          served += 1;
          const { cost, callId } = await fixture.gateway.call(id);
          expect(cost?.amountNanos ?? 0n).toBeGreaterThanOrEqual(state.billNanos);
          const { receipt } = await fixture.gateway.callLog.getCall({
            call: { case: "callId", value: callId },
          });
          expect(receipt?.recomputed).toEqual(receipt?.amount);
        }),
        { numRuns: 40 },
      );
      expect(served).toBeGreaterThan(0);
    },
  );
});
