/** The official SDKs' errors for the gateway's refusals: class, status and headers. */
import Anthropic, {
  APIError as AnthropicError,
  InternalServerError as AnthropicServerError,
  RateLimitError as AnthropicRateLimit,
} from "@anthropic-ai/sdk";
import AnthropicV0, {
  APIError as AnthropicV0Error,
  InternalServerError as AnthropicV0ServerError,
  RateLimitError as AnthropicV0RateLimit,
} from "anthropic-sdk-v0";
import { ApiError, GoogleGenAI } from "@google/genai";
import { GoogleGenAI as GoogleGenAIV2, ApiError as ApiErrorV2 } from "genai-v2";
import OpenAI, { APIError, InternalServerError, RateLimitError } from "openai";
import OpenAIV6, {
  APIError as APIErrorV6,
  InternalServerError as InternalServerErrorV6,
  RateLimitError as RateLimitErrorV6,
} from "openai-v6";
import { describe, expect, it } from "vitest";
import { strictGemini } from "../../support/upstream/gemini-strict.ts";
import { failure } from "../../support/upstream/behaviour.ts";
import { ask, expectFree, publicModel, useGateway } from "../harness.ts";

const geminiModel = "gemini-model";

const fixture = useGateway(
  ({ origin, secret }) => ({
    vendors: {
      gemini: { kind: "gemini", baseUrl: origin, apiKey: secret, nativePrefix: "/gemini" },
    },
    models: {
      [publicModel]: { routes: [{ vendor: "gemini", model: "vendor-model" }] },
      [geminiModel]: { routes: [{ vendor: "gemini", model: "vendor-model" }] },
    },
  }),
  { style: strictGemini() },
);

type ErrorClass = new (...values: never[]) => Error;

interface Client {
  /** Error classes for 429, 402 and 503. */
  readonly raised: Readonly<Record<429 | 402 | 503, ErrorClass>>;
  /** Whether its errors have the reply's headers. */
  readonly hasHeaders: boolean;
  readonly call: (key: string) => Promise<unknown>;
}

const url = (path: string): string => `${fixture.gateway.url}${path}`;
const sdk = (apiKey: string, path: string) => ({ apiKey, baseURL: url(path), maxRetries: 0 });
const turns = { model: publicModel, max_tokens: 64, messages: ask.messages };
const question = { model: geminiModel, contents: "Hello" };

const clients: Readonly<Record<string, Client>> = {
  "openai, chat completions": {
    raised: { 429: RateLimitError, 402: APIError, 503: InternalServerError },
    hasHeaders: true,
    call: (key) => new OpenAI(sdk(key, "/v1")).chat.completions.create(ask),
  },
  "openai, responses": {
    raised: { 429: RateLimitError, 402: APIError, 503: InternalServerError },
    hasHeaders: true,
    call: (key) =>
      new OpenAI(sdk(key, "/v1")).responses.create({ model: publicModel, input: "Hello" }),
  },
  "openai 6, chat completions": {
    raised: { 429: RateLimitErrorV6, 402: APIErrorV6, 503: InternalServerErrorV6 },
    hasHeaders: true,
    call: (key) => new OpenAIV6(sdk(key, "/v1")).chat.completions.create(ask),
  },
  "@anthropic-ai/sdk": {
    raised: { 429: AnthropicRateLimit, 402: AnthropicError, 503: AnthropicServerError },
    hasHeaders: true,
    call: (key) => new Anthropic(sdk(key, "")).messages.create(turns),
  },
  "@anthropic-ai/sdk 0": {
    raised: { 429: AnthropicV0RateLimit, 402: AnthropicV0Error, 503: AnthropicV0ServerError },
    hasHeaders: true,
    call: (key) => new AnthropicV0(sdk(key, "")).messages.create(turns),
  },
  "@google/genai": {
    raised: { 429: ApiError, 402: ApiError, 503: ApiError },
    hasHeaders: false,
    call: (apiKey) =>
      new GoogleGenAI({
        apiKey,
        // The version that the simulated vendor speaks.
        apiVersion: "v1beta",
        httpOptions: { baseUrl: url("/gemini") },
      }).models.generateContent(question),
  },
  "@google/genai 2": {
    raised: { 429: ApiErrorV2, 402: ApiErrorV2, 503: ApiErrorV2 },
    hasHeaders: false,
    call: (apiKey) =>
      new GoogleGenAIV2({
        apiKey,
        httpOptions: { baseUrl: url("/gemini") },
      }).models.generateContent(question),
  },
};

interface Raised extends Error {
  readonly status: number;
  readonly headers?: Headers;
}

async function raisedBy(call: Promise<unknown>): Promise<Raised> {
  return call.then(
    () => expect.unreachable("the call was not refused"),
    (error: unknown) => error as Raised,
  );
}

describe.each(Object.entries(clients))("%s", (_, { raised, hasHeaders, call }) => {
  it("raises its error for a rate limit, with the time to wait, and nothing is charged", async () => {
    const customer = await fixture.gateway.customer();
    const { accountId } = customer;
    const rateLimits = { rpm: 1 };
    const { secret } = await fixture.gateway.keys.createKey({ accountId, rateLimits });
    await call(secret);
    const error = await expectFree(fixture.gateway, customer, () => raisedBy(call(secret)));
    expect(error).toBeInstanceOf(raised[429]);
    expect(error.status).toBe(429);
    expect(error.message).toContain("the API key may use 1 requests per minute");
    if (!hasHeaders) return;
    expect(Number(error.headers?.get("retry-after"))).toBeGreaterThan(0);
    expect(error.headers?.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(error.headers?.get("anthropic-ratelimit-requests-remaining")).toBe("0");
  });

  it("raises its error for an account without money, and does not repeat the call", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: 0n });
    const error = await raisedBy(call(key));
    expect(error).toBeInstanceOf(raised[402]);
    expect(error.status).toBe(402);
    expect(error.message).toContain("Insufficient balance");
    expect(fixture.upstream.requests).toEqual([]);
  });

  it("raises its error for a vendor that fails, and nothing is charged", async () => {
    const customer = await fixture.gateway.customer();
    fixture.upstream.script(failure(401));
    const error = await expectFree(fixture.gateway, customer, () => raisedBy(call(customer.key)));
    expect(error).toBeInstanceOf(raised[503]);
    expect(error.status).toBe(503);
    // A vendor's credential is no customer's matter. The request's id may contain any digits.
    const words = error.message.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "");
    expect(words).not.toContain("401");
  });
});
