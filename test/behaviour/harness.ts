/** Support of all edge tests: a simulated vendor, a gateway in front of it, and a customer. */
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import {
  type Customer,
  type Gateway,
  type GatewayOptions,
  publicModel,
  startGateway,
  type TestVendor,
} from "../support/gateway.ts";
import { type RawReply, type RawRequest, send } from "../support/raw-http.ts";
import {
  startUpstream,
  type Upstream,
  type UpstreamOptions,
} from "../support/upstream/upstream.ts";

export { publicModel };

/** Ready from `beforeAll` on. */
export interface Fixture {
  readonly gateway: Gateway;
  readonly upstream: Upstream;
  readonly customer: Customer;
  /** The official SDK as this customer would set it up, but for its retries. */
  readonly openai: OpenAI;
  /** The official SDK with another key. */
  openaiWith(key: string): OpenAI;
  /** A request with this customer's key and JSON content type, unless `headers` say otherwise. */
  send(path: string, request?: RawRequest): Promise<RawReply>;
  /** A chat completion, as {@link Fixture.send}. */
  chat(body: unknown, headers?: Readonly<Record<string, string>>): Promise<RawReply>;
}

/** The smallest body. */
export const ask = {
  model: publicModel,
  messages: [{ role: "user" as const, content: "Say hello." }],
};

/** The kind of vendor that speaks each style, and where its paths begin. */
const styleKinds = {
  chat: { kind: "openai-compatible", path: "/v1" },
  responses: { kind: "openai", path: "/v1", dialects: ["responses"] },
  messages: { kind: "anthropic", path: "" },
  gemini: { kind: "gemini", path: "", nativePrefix: "/gemini" },
} as const;

/**
 * One vendor of each style, by the name of the style, at one address. @param origin without a path
 */
export function styleVendors(origin: string): Record<keyof typeof styleKinds, TestVendor> {
  const vendors = Object.entries(styleKinds).map(([style, { path, ...kind }]) => [
    style,
    { ...kind, baseUrl: `${origin}${path}`, apiKey: "sk-vendor" },
  ]);
  return Object.fromEntries(vendors) as Record<keyof typeof styleKinds, TestVendor>;
}

/** Registers the fixture's start and end for a test file; the end checks books, holds and leaks. */
export function useGateway(
  options: (upstream: Upstream) => Partial<GatewayOptions> = () => ({}),
  upstreamOptions: UpstreamOptions = {},
): Fixture {
  const fixture = new RunningFixture();
  beforeAll(async () => {
    fixture.upstream = await startUpstream(upstreamOptions);
    const { baseUrl, secret } = fixture.upstream;
    const vendors = { sim: { baseUrl, apiKey: secret } };
    fixture.gateway = await startGateway({ vendors, ...options(fixture.upstream) });
    fixture.customer = await fixture.gateway.customer();
  });
  beforeEach(() => fixture.upstream.clear());
  afterAll(async () => {
    await fixture.gateway?.close();
    await fixture.upstream?.close();
    expect(fixture.upstream.violations).toEqual([]);
  });
  return fixture;
}

class RunningFixture implements Fixture {
  declare gateway: Gateway;
  declare upstream: Upstream;
  declare customer: Customer;

  get openai(): OpenAI {
    return this.openaiWith(this.customer.key);
  }

  openaiWith(key: string): OpenAI {
    return openaiOf(this.gateway, key);
  }

  send(path: string, request: RawRequest = {}): Promise<RawReply> {
    const usual = {
      authorization: `Bearer ${this.customer.key}`,
      ...(request.body !== undefined && { "content-type": "application/json" }),
    };
    const headers = { ...usual, ...request.headers };
    return send(`${this.gateway.url}${path}`, { ...request, headers });
  }

  chat(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<RawReply> {
    return this.send("/v1/chat/completions", { headers, body: JSON.stringify(body) });
  }
}

/** The official SDK for a customer's key. */
export function openaiOf({ url }: Pick<Gateway, "url">, apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
}

/** The parsed body of a reply. */
export function json(reply: RawReply): Record<string, unknown> {
  return JSON.parse(reply.body.toString()) as Record<string, unknown>;
}

/** The `error` member of a reply's body, in the style of chat completions. */
export function errorOf(reply: RawReply): Record<string, unknown> {
  return json(reply)["error"] as Record<string, unknown>;
}

/** The `data:` values of an event stream, in order. */
export function dataOf(body: Buffer): string[] {
  return body
    .toString()
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data: "))
    .map((line) => line.slice(6));
}

/** Runs `work` and expects that the customer's money is as it was before, with nothing held. */
export async function expectFree<T>(
  gateway: Gateway,
  customer: Customer,
  work: () => Promise<T>,
): Promise<T> {
  // The call before may still be settling: it does so after its reply.
  const held = async (): Promise<bigint> => (await gateway.money(customer.accountId)).held;
  await expect.poll(held).toBe(0n);
  const before = await gateway.money(customer.accountId);
  const result = await work();
  await expect.poll(() => gateway.money(customer.accountId)).toEqual(before);
  return result;
}

/** A request that is refused: what it has instead of a good one's, and what its reply says. */
export interface Refusal {
  readonly status: number;
  /** The parameter that the error names. Default: any or none. */
  readonly param?: string;
  readonly method?: string;
  /** As text, or as what becomes JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Sends a request and expects that it is refused as it says, with an error of OpenAI's form, free
 * of charge.
 */
export async function expectRefused(
  fixture: Fixture,
  path: string,
  { status, param, method = "POST", body, headers }: Refusal,
): Promise<void> {
  const sent = typeof body === "string" ? body : JSON.stringify(body);
  const got = await expectFree(fixture.gateway, fixture.customer, () =>
    fixture.send(path, {
      method,
      ...(method === "POST" && { body: sent }),
      headers: { "x-request-id": "refused", ...headers },
    }),
  );
  expect(got.status).toBe(status);
  expect(errorOf(got)).toMatchObject({ message: expect.any(String), code: expect.any(String) });
  if (param !== undefined) expect(errorOf(got)["param"]).toBe(param);
  expect(got.headers["x-request-id"]).toBe("refused");
}

/** A request id that no other test uses. */
export function newRequestId(): string {
  return `test-${crypto.randomUUID()}`;
}
