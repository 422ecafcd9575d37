/** POST /v1/messages/count_tokens and POST /v1/responses/input_tokens (R-TXT-7). */
import Anthropic, {
  BadRequestError,
  NotFoundError,
  PermissionDeniedError,
} from "@anthropic-ai/sdk";
import AnthropicV0 from "anthropic-sdk-v0";
import { NotFoundError as OpenAINotFound } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { countBytesMax } from "../../../../src/core/limits.ts";
import {
  type PlainAnswer,
  type PlainVendor,
  startPlainVendor,
} from "../../../support/plain-vendor.ts";
import { errorOf, expectFree, json, useGateway } from "../../harness.ts";

const secret = "sk-counting-vendor";
const running: { vendor?: PlainVendor } = {};
const counted = '{"input_tokens": 2095,\n "context_management": {"original_input_tokens": 2.50}}';
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: counted }));
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = () => ({ body: counted });
});
afterAll(() => running.vendor?.close());

function vendor(): PlainVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

/** Answers of vendors that are no counts, and what they mean. */
const noCounts: ReadonlyArray<readonly [string, PlainAnswer]> = [
  ["fails", { status: 500, body: "{}" }],
  ["has no such path", { status: 404, body: "{}" }],
  ["asks to slow down", { status: 429, body: "{}" }],
  ["refuses our key", { status: 401, body: "{}" }],
  ["answers something else", { body: "<html>" }],
  ["counts 0", { body: '{"input_tokens":0}' }],
  ["counts a text", { body: '{"input_tokens":"7"}' }],
  ["answers null", { body: "null" }],
];

const fixture = useGateway(() => ({
  vendors: {
    anthropic: { baseUrl: vendor().url, apiKey: secret, kind: "anthropic" },
    openai: { baseUrl: `${vendor().url}/v1`, apiKey: secret, kind: "openai" },
    chat: { baseUrl: `${vendor().url}/v1`, apiKey: secret, kind: "openai-compatible" },
    restricted: {
      baseUrl: `${vendor().url}/v1`,
      apiKey: secret,
      kind: "openai",
      dialects: ["chat-completions"],
    },
  },
  models: {
    claude: { routes: [{ vendor: "anthropic", model: "claude-vendor" }] },
    // One for each: a route that has failed is not asked for a while.
    ...Object.fromEntries(
      noCounts.map(([name]) => [name, { routes: [{ vendor: "anthropic", model: name }] }]),
    ),
    gpt: { routes: [{ vendor: "openai", model: "gpt-vendor" }] },
    plain: { routes: [{ vendor: "chat", model: "plain-vendor" }] },
    restricted: { routes: [{ vendor: "restricted", model: "gpt-vendor" }] },
  },
}));

function anthropic(base = "", key = fixture.customer.key): Anthropic {
  return new Anthropic({ apiKey: key, baseURL: `${fixture.gateway.url}${base}`, maxRetries: 0 });
}

const ask = { model: "claude", messages: [{ role: "user" as const, content: "Hello" }] };

function count(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  return fixture.send(path, { body: JSON.stringify(body), headers });
}

describe("counted by a vendor of the style", () => {
  it.each(["", "/v1"])(
    "a vendor of the style counts for the Anthropic SDK at {base}%s, free",
    async (base) => {
      const result = await expectFree(fixture.gateway, fixture.customer, () =>
        anthropic(base).messages.countTokens({ ...ask, system: "Be brief." }),
      );
      expect(result).toMatchObject(JSON.parse(counted) as object);
      const [request] = vendor().requests;
      expect(request?.url).toBe("/v1/messages/count_tokens");
      expect(request?.headers["x-api-key"]).toBe(secret);
      expect(request?.headers["anthropic-version"]).toBe("2026-10-21");
      expect(JSON.parse(request?.body ?? "")).toEqual({
        ...ask,
        model: "claude-vendor",
        system: "Be brief.",
      });
    },
  );

  it("a vendor of the style counts for older versions of the Anthropic SDK, with betas and their query", async () => {
    const { key: apiKey } = fixture.customer;
    const client = new AnthropicV0({ apiKey, baseURL: fixture.gateway.url });
    await client.beta.messages.countTokens({ ...ask, betas: ["token-counting-2024-11-01"] });
    const [request] = vendor().requests;
    expect(request?.url).toBe("/v1/messages/count_tokens?beta=true");
    expect(request?.headers["anthropic-beta"]).toContain("token-counting-2024-11-01");
    expect(request?.headers["anthropic-version"]).toBe("2023-06-01");
  });

  it("a vendor of the style counts for the OpenAI SDK", async () => {
    const body = { object: "response.input_tokens", input_tokens: 11 };
    vendor().answer = () => ({ body: JSON.stringify(body) });
    const result = await fixture.openai.responses.inputTokens.count({ model: "gpt", input: "Hi" });
    expect(result).toMatchObject(body);
    expect(vendor().requests[0]?.url).toBe("/v1/responses/input_tokens");
    expect(JSON.parse(vendor().requests[0]?.body ?? "")).toEqual({
      model: "gpt-vendor",
      input: "Hi",
    });
  });

  it("a vendor's count passes byte for byte, with both request ids (R-TXT-1, R-ID-3)", async () => {
    const reply = await count("/v1/messages/count_tokens", ask, { "x-request-id": "mine" });
    expect(reply.body.toString()).toBe(counted);
    expect(reply.headers).toMatchObject({ "x-request-id": "mine", "request-id": "mine" });
  });

  it("a client that leaves before its count has come is no defect in the log", async () => {
    vendor().answer = () => ({ body: undefined });
    const requestId = "left-before-the-count";
    const leaving = new AbortController();
    const answer = fetch(`${fixture.gateway.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers: {
        "x-api-key": fixture.customer.key,
        "x-request-id": requestId,
        "content-type": "application/json",
      },
      body: JSON.stringify(ask),
      signal: leaving.signal,
    });
    await expect.poll(() => vendor().requests.length).toBe(1);
    leaving.abort();
    await expect(answer).rejects.toThrow("aborted");
    const ownLines = (): string[] => fixture.gateway.log.filter((line) => line.includes(requestId));
    await expect.poll(() => ownLines().join("")).toContain('"status":499');
    // The next request begins once everything that the abort has caused is done.
    await fixture.send("/v1/models", { method: "GET" });
    expect(ownLines().filter((line) => /"level":[4-6]0/.test(line))).toEqual([]);
  });

  it("a vendor's refusal to count passes in its own words (R-ERR-4)", async () => {
    const told =
      '{"type":"error","error":{"type":"invalid_request_error","message":"messages: empty"}}';
    vendor().answer = () => ({ status: 400, body: told });
    const reply = await count("/v1/messages/count_tokens", { ...ask, messages: [] });
    expect([reply.status, reply.body.toString()]).toEqual([400, told]);
  });
});

describe("estimated by the gateway", () => {
  const estimate = async (path: string, body: unknown): Promise<number> => {
    const reply = await count(path, body);
    expect(reply.status).toBe(200);
    return json(reply)["input_tokens"] as number;
  };

  it.each([
    ["/v1/messages/count_tokens", { ...ask, model: "gpt" }],
    ["/v1/messages/count_tokens", { ...ask, model: "plain" }],
    ["/v1/responses/input_tokens", { model: "claude", input: "Hello" }],
    ["/v1/responses/input_tokens", { model: "restricted", input: "Hello" }],
    ["/v1/v1/responses/input_tokens", { model: "plain" }],
  ])(
    "the gateway estimates tokens where the vendor does not count in the style: %s %j",
    async (path, body) => {
      expect(await estimate(path, body)).toBeGreaterThan(0);
      expect(vendor().requests).toHaveLength(0);
    },
  );

  it.each(noCounts)("the gateway estimates tokens where the vendor %s", async (model, answer) => {
    vendor().answer = () => answer;
    const tokens = await estimate("/v1/messages/count_tokens", { ...ask, model });
    expect(tokens).toBeGreaterThan(0);
    expect(vendor().requests).toHaveLength(1);
  });

  it("the gateway's estimate comes in the body of the style", async () => {
    const { responses } = fixture.openai;
    const got = await responses.inputTokens.count({ model: "plain", input: "Hello" });
    expect(got).toMatchObject({ object: "response.input_tokens", input_tokens: 3 });
    const messages = await anthropic().messages.countTokens({ ...ask, model: "plain" });
    expect(messages).toMatchObject({ input_tokens: 4 });
  });

  it("the gateway estimates a token for four bytes of text, and a picture not by its base64", async () => {
    const path = "/v1/messages/count_tokens";
    const body = (content: unknown) => ({ model: "plain", messages: [{ role: "user", content }] });
    const base = await estimate(path, body(""));
    expect((await estimate(path, body("x".repeat(4_000)))) - base).toBe(1_000);
    expect((await estimate(path, body("€".repeat(4_000)))) - base).toBe(3_000);
    const source = { type: "base64", media_type: "image/png", data: "A".repeat(1_000_000) };
    const picture = await estimate(path, body([{ type: "image", source }]));
    expect(picture).toBeGreaterThan(1_600);
    expect(picture).toBeLessThan(1_650);
    const url = `data:image/png;base64,${"A".repeat(1_000_000)}`;
    const input = [{ role: "user", content: [{ type: "input_image", image_url: url }] }];
    const again = await estimate("/v1/responses/input_tokens", { model: "plain", input });
    expect(again).toBeLessThan(1_650);
  });
});

describe("long bodies", () => {
  it("a body with more than 2 MiB of text is estimated by its length: nothing parses it, and no vendor is called (R-LIM-2)", async () => {
    const content = "x".repeat(countBytesMax);
    const body = { ...ask, messages: [{ role: "user", content }] };
    const tokens = json(await count("/v1/messages/count_tokens", body))["input_tokens"] as number;
    expect(tokens).toBeGreaterThan(countBytesMax / 4);
    expect(tokens).toBeLessThan(countBytesMax / 4 + 100);
    expect(vendor().requests).toHaveLength(0);
  });

  it("media do not make a body long: its vendor counts it", async () => {
    const source = { type: "base64", media_type: "image/png", data: "A".repeat(countBytesMax) };
    const body = { ...ask, messages: [{ role: "user", content: [{ type: "image", source }] }] };
    const reply = await count("/v1/messages/count_tokens", body);
    expect(json(reply)["input_tokens"]).toBe(2095);
    expect(vendor().requests).toHaveLength(1);
  });
});

describe("refused in the words of the style, free", () => {
  const good = JSON.stringify({ ...ask, model: "plain" });
  it.each([
    { status: 400, body: "{" },
    { status: 400, body: "[]" },
    { status: 400, body: '{"model":"plain"}', says: "messages" },
    { status: 400, body: '{"messages":[]}', says: "model" },
    { status: 404, body: good.replace("plain", "none") },
    { status: 401, headers: { authorization: "" } },
    { status: 415, headers: { "content-type": "text/plain" } },
    { status: 405, method: "GET" },
  ])(
    "counting tokens is refused with $status, free: $body",
    async ({ status, body, headers, method, says }) => {
      const reply = await expectFree(fixture.gateway, fixture.customer, () =>
        fixture.send("/v1/messages/count_tokens", {
          method: method ?? "POST",
          ...(method === undefined && { body: body ?? good }),
          headers: { "x-request-id": "refused", ...headers },
        }),
      );
      expect(reply.status).toBe(status);
      expect(json(reply)).toMatchObject({ type: "error", request_id: "refused" });
      if (says !== undefined) expect(reply.body.toString()).toContain(says);
    },
  );

  it("403, 404 and 400 as the SDKs see them", async () => {
    const { key } = await fixture.gateway.customer({ models: ["plain"] });
    const denied = anthropic("", key).messages.countTokens(ask);
    await expect(denied).rejects.toBeInstanceOf(PermissionDeniedError);
    const none = anthropic().messages.countTokens({ ...ask, model: "none" });
    await expect(none).rejects.toBeInstanceOf(NotFoundError);
    const empty = anthropic().messages.countTokens({ model: "plain" } as typeof ask);
    await expect(empty).rejects.toBeInstanceOf(BadRequestError);
    const other = fixture.openai.responses.inputTokens.count({ model: "none", input: "x" });
    await expect(other).rejects.toBeInstanceOf(OpenAINotFound);
    const bad = await fixture.send("/v1/responses/input_tokens", { body: "{" });
    expect([bad.status, errorOf(bad)["code"]]).toEqual([400, "invalid_request"]);
  });
});
