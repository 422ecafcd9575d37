/**
 * A gateway in front of vendors that speak responses and chat completions, strictly, and the demo
 * vendor; and the official SDK, as a customer would set it up.
 */
import { randomUUID } from "node:crypto";
import OpenAI from "openai";
import OpenAIv6 from "openai-v6";
import type { Response } from "openai/resources/responses/responses";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { type Customer, type Gateway, type Money, startGateway } from "../../../support/gateway.ts";
import { type RawReply, send } from "../../../support/raw-http.ts";
import { strictChat } from "../../../support/upstream/chat-strict.ts";
import { strictResponses } from "../../../support/upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";

/**
 * Ready from `beforeAll` on. Models: `responses`, `chat`, `both` (chat first) and `demo`; `closed`
 * is one that the key may not use.
 */
export interface BackgroundFixture {
  readonly gateway: Gateway;
  readonly customer: Customer;
  readonly openai: OpenAI;
  /** The vendor of each model but the demo's. */
  readonly vendor: Readonly<Record<"responses" | "chat", Upstream>>;
  openaiWith(customer: Customer): OpenAI;
  /** Posts a body as it is, with these headers too. */
  post(body: string | object, headers?: Readonly<Record<string, string>>): Promise<RawReply>;
  /** The customer's money, once nothing of it is held: a call settles after its reply. */
  settled(): Promise<Money>;
  /** Waits for the end of a response, as a client would: it asks again and again. */
  ended(id: string, openai?: OpenAI): Promise<Response>;
}

/** Registers start and end for a test file; the end checks books, holds and leaks. */
export function useBackground(): BackgroundFixture {
  const fixture = {} as { -readonly [Name in keyof BackgroundFixture]: BackgroundFixture[Name] };
  const openaiWith = ({ key }: Customer): OpenAI =>
    new OpenAI({ baseURL: `${fixture.gateway.url}/v1`, apiKey: key, maxRetries: 0 });
  beforeAll(async () => {
    const [responses, chat] = await Promise.all([
      startUpstream({ style: strictResponses() }),
      startUpstream({ style: strictChat() }),
    ]);
    const route = (vendor: string, model = "vendor-model") => ({ routes: [{ vendor, model }] });
    fixture.vendor = { responses, chat };
    fixture.gateway = await startGateway({
      vendors: {
        responses: {
          kind: "openai",
          dialects: ["responses"],
          baseUrl: responses.baseUrl,
          apiKey: responses.secret,
        },
        chat: { baseUrl: chat.baseUrl, apiKey: chat.secret },
        demo: { kind: "demo", baseUrl: "" },
      },
      models: {
        responses: route("responses"),
        chat: route("chat"),
        both: { routes: [...route("chat").routes, ...route("responses").routes] },
        demo: route("demo", "instant"),
        closed: route("chat"),
      },
    });
    fixture.customer = await fixture.gateway.customer({
      models: ["responses", "chat", "both", "demo"],
    });
    fixture.openai = openaiWith(fixture.customer);
  });
  beforeEach(() => {
    for (const vendor of Object.values(fixture.vendor)) vendor.clear();
  });
  afterAll(async () => {
    await fixture.gateway?.close();
    const vendors = Object.values(fixture.vendor);
    await Promise.all(vendors.map((vendor) => vendor.close()));
    expect(vendors.flatMap(({ violations }) => violations)).toEqual([]);
  });
  return Object.assign(fixture, {
    openaiWith,
    post: (body: string | object, headers: Readonly<Record<string, string>> = {}) =>
      send(`${fixture.gateway.url}/v1/responses`, {
        headers: {
          authorization: `Bearer ${fixture.customer.key}`,
          "content-type": "application/json",
          ...headers,
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    async settled() {
      const { gateway, customer } = fixture;
      const held = async (): Promise<bigint> => (await gateway.money(customer.accountId)).held;
      await expect.poll(held).toBe(0n);
      return gateway.money(customer.accountId);
    },
    ended: (id: string, openai = fixture.openai) => ended(openai, id),
  });
}

/** The same calls with version 6 of the SDK. */
export function openaiV6({ gateway, customer }: BackgroundFixture): OpenAI {
  const baseURL = `${gateway.url}/v1`;
  return new OpenAIv6({ baseURL, apiKey: customer.key, maxRetries: 0 }) as unknown as OpenAI;
}

/** Waits for the end of a response. */
export async function ended(openai: OpenAI, id: string): Promise<Response> {
  for (const signal = AbortSignal.timeout(30_000); ; signal.throwIfAborted()) {
    const response = await openai.responses.retrieve(id);
    if (response.status !== "queued" && response.status !== "in_progress") return response;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A key or request id that no other test uses. */
export function unique(): string {
  return `test-${randomUUID()}`;
}
