/** R-TXT-13: headers with which a vendor may bill what has no price do not reach it. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { priceDefault } from "../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { type ReplyStyle, textReply } from "../../support/text-replies.ts";
import { newRequestId, useGateway } from "../harness.ts";

const state: { vendor?: PlainVendor } = {};

const usages: Record<ReplyStyle, object> = {
  chat: { prompt_tokens: 10, completion_tokens: 5 },
  responses: { input_tokens: 10, output_tokens: 5 },
  messages: { input_tokens: 10, output_tokens: 5 },
  gemini: { promptTokenCount: 10, candidatesTokenCount: 5 },
};

function styleOf(url: string): ReplyStyle {
  if (url.includes("messages")) return "messages";
  if (url.includes("responses")) return "responses";
  return url.includes("generateContent") ? "gemini" : "chat";
}

beforeAll(async () => {
  state.vendor = await startPlainVendor(({ url }) => {
    if (url.includes("count_tokens")) return { body: '{"input_tokens":77}' };
    const style = styleOf(url);
    return textReply(style, { text: "Hello", usage: usages[style] }, false);
  });
});
beforeEach(() => state.vendor?.requests.splice(0));
afterAll(() => state.vendor?.close());

const fixture = useGateway(() => {
  const origin = state.vendor?.url ?? "";
  const apiKey = "sk-betas";
  const anthropic = { kind: "anthropic", baseUrl: origin, apiKey } as const;
  const routeTo = (vendor: string) => ({ routes: [{ vendor, model: "vendor-model" }] });
  const tiers = [{ ...priceDefault, above: 200_000 }];
  return {
    vendors: {
      anthropic,
      lenient: { ...anthropic, unknownBetas: "pass" },
      openai: { kind: "openai", baseUrl: `${origin}/v1`, apiKey },
      gemini: { kind: "gemini", baseUrl: origin, apiKey, nativePrefix: "/gemini" },
    },
    models: {
      claude: routeTo("anthropic"),
      lenient: routeTo("lenient"),
      long: { ...routeTo("anthropic"), price: { ...priceDefault, tiers } },
      gpt: routeTo("openai"),
      gemini: routeTo("gemini"),
    },
  };
});

async function ask(path: string, body: object, headers: Record<string, string>) {
  const { gateway, customer } = fixture;
  const response = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      "x-request-id": newRequestId(),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const turns = [{ role: "user", content: "Hi" }];
const claude = { max_tokens: 64, messages: turns };
const beta = (value: string) => ({ "anthropic-beta": value });
const sent = () => state.vendor?.requests ?? [];

it("an unknown beta is refused in the caller's style, and its vendor is not asked", async () => {
  const unknown = beta("effort-2025-11-24,next-year-2027-01-01");
  const messages = await ask("/v1/messages", { model: "claude", ...claude }, unknown);
  expect([messages.status, messages.body["type"]]).toEqual([400, "error"]);
  expect(JSON.stringify(messages.body)).toContain("next-year-2027-01-01");
  for (const [path, body] of [
    ["/v1/chat/completions", { messages: turns }],
    ["/v1/responses", { input: "Hi" }],
    ["/v1/responses", { input: "Hi", background: true }],
  ] as const) {
    const reply = await ask(path, { model: "gpt", ...body }, { "openai-beta": "next=v9" });
    expect(reply.status).toBe(400);
    expect(reply.body["error"]).toMatchObject({ param: "openai-beta" });
  }
  expect(sent()).toEqual([]);
});

it("an unknown beta passes where the vendor has unknown_betas: pass", async () => {
  const unknown = beta("next-year-2027-01-01");
  const reply = await ask("/v1/messages", { model: "lenient", ...claude }, unknown);
  expect(reply.status).toBe(200);
  expect(sent().map(({ headers }) => headers["anthropic-beta"])).toEqual(["next-year-2027-01-01"]);
});

it("a beta says nothing to a vendor of another style, and is not refused there", async () => {
  const unknown = beta("next-year-2027-01-01");
  const reply = await ask("/v1/messages", { model: "gpt", ...claude }, unknown);
  expect(reply.status).toBe(200);
  expect(sent().map(({ headers }) => headers["anthropic-beta"])).toEqual([undefined]);
});

it("the beta for long inputs passes for a model with prices for long inputs, and no other", async () => {
  const long = beta("context-1m-2025-08-07");
  const refused = await ask("/v1/messages", { model: "claude", ...claude }, long);
  expect([refused.status, sent().length]).toEqual([400, 0]);
  const served = await ask("/v1/messages", { model: "long", ...claude }, long);
  expect([served.status, sent().length]).toEqual([200, 1]);
});

it("a count with an unknown beta is estimated here", async () => {
  const path = "/v1/messages/count_tokens";
  const body = { model: "claude", messages: turns };
  expect((await ask(path, body, beta("effort-2025-11-24"))).body["input_tokens"]).toBe(77);
  const estimated = await ask(path, body, beta("next-year-2027-01-01"));
  expect(estimated.status).toBe(200);
  expect(estimated.body["input_tokens"]).not.toBe(77);
  expect(sent()).toHaveLength(1);
});

it("a request for a part of a reply is not sent with a generation", async () => {
  const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
  const path = "/gemini/v1beta/models/gemini:generateContent";
  const reply = await ask(path, { contents }, { range: "bytes=0-10" });
  expect(reply.status).toBe(200);
  expect(sent().map(({ headers }) => headers["range"])).toEqual([undefined]);
});
