/**
 * Requests that are too long for every route of their model: the error in each style, free of
 * charge.
 */
import Anthropic, { BadRequestError as BadMessagesError } from "@anthropic-ai/sdk";
import { BadRequestError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  completes,
  refuses,
  type RoutingVendor,
  startVendor,
} from "../../support/routing-vendor.ts";
import { expectFree, json, newRequestId, openaiOf, useGateway } from "../harness.ts";

let vendor: RoutingVendor;
beforeAll(async () => {
  vendor = await startVendor();
});
afterAll(() => vendor.close());
beforeEach(() => {
  vendor.requests.length = 0;
  vendor.answer = completes;
});

const fixture = useGateway(() => ({
  vendors: { v: { baseUrl: vendor.baseUrl, apiKey: "sk-v" } },
  models: {
    counted: {
      routes: [
        { vendor: "v", model: "gpt-4o", maxContext: 1_000 },
        { vendor: "v", model: "gpt-4o-mini", maxContext: 2_000 },
      ],
    },
    replaced: {
      routes: [{ vendor: "v", model: "gpt-4o", maxContext: 1_000 }],
      fallbackModels: ["longer"],
    },
    longer: { routes: [{ vendor: "v", model: "gpt-4.1", maxContext: 100_000 }] },
    uncounted: { routes: [{ vendor: "v", model: "secret-tokens", maxContext: 2_000 }] },
    unlimited: { routes: [{ vendor: "v", model: "secret-tokens" }] },
  },
}));

/** 3,000 tokens, of which each is a word. */
const long = "word ".repeat(3_000).trim();

const bodies = {
  "/v1/chat/completions": {
    body: { messages: [{ role: "user", content: long }], max_tokens: 500 },
    input: "messages",
    limit: "max_tokens",
  },
  "/v1/responses": {
    body: { input: long, max_output_tokens: 500 },
    input: "input",
    limit: "max_output_tokens",
  },
  "/v1/messages": {
    body: { messages: [{ role: "user", content: long }], max_tokens: 500 },
    input: "messages",
    limit: "max_tokens",
  },
} as const;

const rows = Object.entries(bodies).flatMap(([path, row]) =>
  [false, true].map((stream) => ({ path, stream, ...row })),
);

// The thread that counts has started: before that, on a busy machine, only the vendor would count.
beforeAll(async () => {
  const { body } = bodies["/v1/chat/completions"];
  while ((await fixture.chat({ model: "counted", ...body })).status !== 400);
});

async function post(path: string, body: object): Promise<{ status: number; error: ErrorBody }> {
  const reply = await expectFree(fixture.gateway, fixture.customer, () =>
    fixture.send(path, {
      headers: { "x-request-id": newRequestId() },
      body: JSON.stringify(body),
    }),
  );
  return { status: reply.status, error: json(reply)["error"] as ErrorBody };
}

interface ErrorBody {
  readonly message: string;
  readonly param?: string;
  readonly details?: object;
}

/** The figure of tokens that a message says. */
const toldTokens = ({ message }: ErrorBody): number =>
  Number(/it has about ([\d,]+) tokens/.exec(message)?.[1]?.replaceAll(",", ""));

describe("a request that is too long for every route of its model", () => {
  it.each(rows)(
    "is refused before a vendor is called if its tokens can be counted, free of charge, with a remedy: $path, stream $stream",
    async ({ path, stream, body, input, limit }) => {
      const { status, error } = await post(path, { model: "counted", stream, ...body });
      expect(status).toBe(400);
      expect(error.message).toMatch(/^The prompt is too long for `counted`: /);
      expect(error.message).toContain("and may get 500 in its reply");
      expect(error.message).toContain("the maximum context length is 2,000 tokens, with the reply");
      expect(error.message).toContain(`Shorten \`${input}\`, lower \`${limit}\`, or use a model`);
      expect(toldTokens(error)).toBeGreaterThanOrEqual(3_000);
      expect(toldTokens(error)).toBeLessThan(3_100);
      expect(vendor.requests).toEqual([]);
    },
  );

  it.each(["/v1/responses", "/v1/messages"] as const)(
    "is reported after its vendor's own words if only the vendor can count it: %s",
    async (path) => {
      vendor.answer = refuses(400, {}, "context_length_exceeded");
      const { body, input } = bodies[path];
      const { status, error } = await post(path, { model: "uncounted", ...body });
      expect(status).toBe(400);
      expect(error.message).toMatch(/^refused with 400\. The prompt is too long for `uncounted`: /);
      expect(error.message).toContain("the maximum context length is 2,000 tokens, with the reply");
      expect(error.message).toContain(`Shorten \`${input}\``);
      expect(error.details).toMatchObject({ upstream_code: "context_length_exceeded" });
      expect(vendor.requests).toHaveLength(1);
    },
  );

  it("contains no length that was not configured", async () => {
    vendor.answer = refuses(400, {}, "context_length_exceeded");
    const { body } = bodies["/v1/messages"];
    const { error } = await post("/v1/messages", { model: "unlimited", ...body });
    expect(error.message).toContain("The prompt is too long for `unlimited`: ");
    expect(error.message).not.toContain("maximum context length");
  });

  it("gets its vendor's refusal byte for byte in the vendor's own style (R-ERR-4)", async () => {
    vendor.answer = refuses(400, {}, "context_length_exceeded");
    const { body } = bodies["/v1/chat/completions"];
    const { error } = await post("/v1/chat/completions", { model: "uncounted", ...body });
    expect(error).toEqual({
      ...{ message: "refused with 400", type: "x", code: "context_length_exceeded" },
    });
  });

  it("goes to a fallback model that takes it", async () => {
    const refused = refuses(400, {}, "context_length_exceeded");
    vendor.answer = (request) => (request.model === "gpt-4o" ? refused : completes)(request);
    const { body } = bodies["/v1/chat/completions"];
    const reply = await fixture.chat({ model: "replaced", ...body });
    expect([reply.status, reply.headers["x-uas-route"]]).toEqual([200, "v/gpt-4.1"]);
    expect(vendor.requests.map(({ model }) => model)).toEqual(["gpt-4o", "gpt-4.1"]);
  });

  it("is not refused for the length of the reply that it allows: its vendor decides about that", async () => {
    const body = { messages: [{ role: "user", content: "Hi" }], max_tokens: 1_999 };
    const reply = await fixture.chat({ model: "counted", ...body });
    expect(reply.status).toBe(200);
  });

  it("raises the errors of bad requests in the official SDKs", async () => {
    const { key } = fixture.customer;
    const openai = openaiOf(fixture.gateway, key);
    const anthropic = new Anthropic({ apiKey: key, baseURL: fixture.gateway.url, maxRetries: 0 });
    const { messages } = bodies["/v1/messages"].body;
    const params = { model: "counted", messages: [...messages], max_tokens: 500 };
    await expect(openai.chat.completions.create(params)).rejects.toThrow(BadRequestError);
    const refused = anthropic.messages.create(params);
    await expect(refused).rejects.toThrow(BadMessagesError);
    await expect(refused).rejects.toThrow(/prompt is too long/);
  });
});
