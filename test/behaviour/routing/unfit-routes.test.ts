/**
 * A call fails over past routes that cannot serve its request, and its caller gets the error of
 * those that can.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { priceDefault } from "../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { textReply } from "../../support/text-replies.ts";
import { bearer } from "../rpc/harness.ts";
import { newRequestId, useGateway } from "../harness.ts";

const state: { vendor?: PlainVendor } = {};

/** The vendors at `/down` are out of service; the others answer. */
beforeAll(async () => {
  state.vendor = await startPlainVendor(({ url }) => {
    if (url.startsWith("/down")) return { status: 503, body: '{"error":{"message":"down"}}' };
    const style = url.includes("messages") ? "messages" : "chat";
    const usage = style === "chat" ? { prompt_tokens: 10 } : { input_tokens: 10, output_tokens: 5 };
    return textReply(style, { text: "Hello", usage }, false);
  });
});
afterAll(() => state.vendor?.close());

const tiers = { serviceTiers: { priority: { ...priceDefault, serviceTier: "priority" as const } } };

const fixture = useGateway(() => {
  const origin = state.vendor?.url ?? "";
  const chat = (name: string) => ({ baseUrl: `${origin}/${name}/v1`, apiKey: "sk-unfit" });
  const anthropic = (name: string) => ({
    ...{ kind: "anthropic" as const, baseUrl: `${origin}/${name}`, apiKey: "sk-unfit" },
  });
  const routes = (...vendors: readonly string[]) => ({
    routes: vendors.map((vendor) => ({ vendor, model: "vendor-model" })),
  });
  return {
    vendors: {
      "chat-down": chat("down"),
      "chat-up": chat("up"),
      "betas-down": { ...anthropic("down"), unknownBetas: "pass" as const },
      "betas-up": { ...anthropic("up"), unknownBetas: "pass" as const },
      strict: anthropic("up"),
    },
    models: {
      "no-other": routes("betas-down", "strict"),
      other: routes("betas-down", "strict", "betas-up"),
      "strict-first": routes("strict", "betas-up"),
      "strict-only": routes("strict", "strict"),
      "strict-with-fallback": { ...routes("strict", "strict"), fallbackModels: ["passing"] },
      passing: routes("betas-up"),
      tiered: { ...routes("chat-down"), price: { ...priceDefault, ...tiers } },
      "tiered-up": { ...routes("chat-up"), price: { ...priceDefault, ...tiers } },
      plain: routes("chat-up"),
    },
  };
});

async function ask(path: string, body: object, headers: Record<string, string> = {}) {
  const id = newRequestId();
  const reply = await fetch(`${fixture.gateway.url}${path}`, {
    method: "POST",
    headers: {
      ...bearer(fixture.customer.key),
      "content-type": "application/json",
      "x-request-id": id,
      ...headers,
    },
    body: JSON.stringify({
      ...body,
      max_tokens: 64,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  const text = await reply.text();
  return { status: reply.status, text, call: await fixture.gateway.call(id) };
}

const beta = { "anthropic-beta": "next-year-2027-01-01" };

it("a beta that the second route refuses fails over to the third one", async () => {
  const { status, text, call } = await ask("/v1/messages", { model: "other" }, beta);
  expect([status, text.includes("Hello"), call.vendor]).toEqual([200, true, "betas-up"]);
});

it("a beta that the first route refuses goes to the route that passes it", async () => {
  const { status, text, call } = await ask("/v1/messages", { model: "strict-first" }, beta);
  expect([status, text.includes("Hello"), call.vendor]).toEqual([200, true, "betas-up"]);
  const plain = await ask("/v1/messages", { model: "strict-first" });
  expect([plain.status, plain.call.vendor]).toEqual([200, "strict"]);
});

it("a beta that all routes of the model refuse is served and charged as the fallback model that passes it", async () => {
  const model = "strict-with-fallback";
  const { status, text, call } = await ask("/v1/messages", { model }, beta);
  expect([status, text.includes("Hello"), call.vendor]).toEqual([200, true, "betas-up"]);
  expect([call.model, call.attempts.length]).toEqual(["passing", 0]);
  const plain = await ask("/v1/messages", { model });
  expect([plain.status, plain.call.model]).toEqual([200, model]);
  const named = { model: "strict-only", fallback_models: ["strict-only", "strict-first"] };
  expect((await ask("/v1/messages", named, beta)).call.model).toBe("strict-first");
});

it("a service tier that only the fallback model has a price for is served by it", async () => {
  const asked = { model: "plain", service_tier: "priority", fallback_models: ["tiered-up"] };
  const { status, call } = await ask("/v1/chat/completions", asked);
  expect([status, call.model]).toEqual([200, "tiered-up"]);
});

it("a beta that all routes refuse is 400 and names the header", async () => {
  const { status, text } = await ask("/v1/messages", { model: "strict-only" }, beta);
  expect([status, text.includes("anthropic-beta")]).toEqual([400, true]);
});

it("a beta that every other route refuses is the failure of the first one, not of the caller", async () => {
  for (let calls = 0; calls < 2; calls++) {
    const { status, text, call } = await ask("/v1/messages", { model: "no-other" }, beta);
    expect([status, text.includes("next-year")]).toEqual([503, false]);
    expect(call.cost?.amountNanos ?? 0n).toBe(0n);
  }
});

it("a service tier that the fallback model has no price for is the failure of the first model", async () => {
  const asked = { model: "tiered", service_tier: "priority", fallback_models: ["plain"] };
  for (let calls = 0; calls < 2; calls++) {
    const { status, text } = await ask("/v1/chat/completions", asked);
    expect([status, text.includes("service_tier")]).toEqual([503, false]);
  }
  const plain = await ask("/v1/chat/completions", { model: "tiered", fallback_models: ["plain"] });
  expect([plain.status, plain.call.model]).toEqual([200, "plain"]);
});
