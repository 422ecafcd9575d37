/** Whatever a client sends in one style to a model of another: no 5xx, no hang, nothing held (R-ERR-7). */
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Customer, type Gateway, startGateway, type TestVendor } from "../support/gateway.ts";
import { send } from "../support/raw-http.ts";
import { strictChat } from "../support/upstream/chat-strict.ts";
import { strictGemini } from "../support/upstream/gemini-strict.ts";
import { strictMessages } from "../support/upstream/messages-strict.ts";
import { strictResponses } from "../support/upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "../support/upstream/upstream.ts";
import { mutated } from "./fuzz-bodies.ts";

const styles = {
  chat: { kind: "openai-compatible", dialects: ["chat-completions"], style: strictChat },
  responses: { kind: "openai", dialects: ["responses"], style: strictResponses },
  messages: { kind: "anthropic", dialects: ["messages"], style: strictMessages },
  gemini: { kind: "gemini", dialects: undefined, style: strictGemini },
} as const;

const upstreams: Upstream[] = [];
let gateway: Gateway;
let customer: Customer;

beforeAll(async () => {
  const vendors: Record<string, TestVendor> = {};
  const models: Record<string, object> = {};
  for (const [vendor, { kind, dialects, style }] of Object.entries(styles)) {
    const upstream = await startUpstream({ style: style() });
    upstreams.push(upstream);
    const isOpenAI = kind.startsWith("openai");
    const baseUrl = isOpenAI ? upstream.baseUrl : upstream.origin;
    vendors[vendor] = { kind, dialects, baseUrl, apiKey: upstream.secret };
    models[`m-${vendor}`] = { routes: [{ vendor, model: "vendor-model" }] };
  }
  gateway = await startGateway({ vendors, models });
  customer = await gateway.customer();
});

afterAll(async () => {
  // Fails where anything is still held.
  await gateway?.close();
  for (const upstream of upstreams) await upstream.close();
});

it("a changed body of any style is answered, and never by a failure of ours", async () => {
  await fc.assert(
    fc.asyncProperty(mutated, async ({ path, body, headers }) => {
      const reply = await send(`${gateway.url}${path}`, {
        headers: {
          authorization: `Bearer ${customer.key}`,
          "content-type": "application/json",
          ...headers,
        },
        body,
      });
      expect(reply.status, reply.body.toString()).toBeLessThan(500);
      expect(reply.isCut).toBe(false);
      expect(reply.headers["injected"]).toBeUndefined();
      expect((reply.headers["x-uas-dropped"] ?? "").length).toBeLessThanOrEqual(1024);
      if (reply.status >= 400) expect(JSON.parse(reply.body.toString())).toHaveProperty("error");
    }),
    { numRuns: 1_000, seed: 20_261_101 },
  );
  const failures = gateway.log.filter((line) => line.includes('"level":50'));
  expect(failures).toEqual([]);
}, 120_000);
