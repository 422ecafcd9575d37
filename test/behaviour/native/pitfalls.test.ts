/** Pitfalls of passing vendors' traffic on that no other file of this folder shows. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type NativeGateway, startGeminiGateway } from "./gemini-gateway.ts";
import { geminiEvents, geminiReply } from "./gemini-replies.ts";

let gateway: NativeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  customer = await gateway.customer();
});

beforeEach(() => gateway.vendor.clear());

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

const contents = [{ parts: [{ text: "Hi" }] }];

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.url}/gemini/v1beta/models/gemini-x${path}`, {
    method: "POST",
    body: JSON.stringify({ contents }),
    ...init,
    headers: { "x-goog-api-key": customer.key, ...(init.headers as Record<string, string>) },
  });
}

test("pitfall 9: an unrequested compressed reply is decoded and charged", async () => {
  const headers = { "content-encoding": "gzip" };
  gateway.vendor.answer(() => ({ headers, body: gzipSync(geminiReply) }));
  for (const path of [":generateContent", ":countTokens"]) {
    const response = await ask(path, { headers: { "x-request-id": `zip${path.slice(1)}` } });
    expect([path, response.status]).toEqual([path, 200]);
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(await response.text()).toBe(geminiReply);
  }
  const call = await gateway.call("zipgenerateContent");
  expect(call.cost?.amountNanos ?? 0n).toBeGreaterThan(0n);
});

test("pitfall 6: a body of nearly 20 MiB passes, byte for byte", async () => {
  gateway.vendor.answer(() => ({ body: geminiReply }));
  const data = "A".repeat(19 * 1024 * 1024);
  const parts = [{ inlineData: { mimeType: "image/png", data } }];
  const body = JSON.stringify({ contents: [{ parts }] });
  const response = await ask(":generateContent", { body });
  expect(response.status).toBe(200);
  expect(gateway.vendor.requests[0]?.body.equals(Buffer.from(body))).toBe(true);
});

test("pitfall 10: a stream is relayed as it arrives, and consumed after its client disconnects", async () => {
  let more = (): void => {};
  const asked = new Promise<void>((resolve) => (more = resolve));
  gateway.vendor.answer(() => ({
    headers: { "content-type": "text/event-stream" },
    body: (async function* () {
      yield geminiEvents[0] ?? "";
      await asked;
      yield* geminiEvents.slice(1);
    })(),
  }));
  const leaving = new AbortController();
  const response = await ask(":streamGenerateContent?alt=sse", {
    signal: leaving.signal,
    headers: { "x-request-id": "left" },
  });
  const reader = response.body?.getReader();
  const first = await reader?.read();
  expect(Buffer.from(first?.value ?? []).toString()).toBe(geminiEvents[0]);
  leaving.abort();
  more();
  // Gemini charges for all of it either way: its own figure is what counts.
  const call = await gateway.call("left");
  expect(call.usage?.outputTokens).toBe(25);
});

test("R-MON-5: a stream whose hold is used up ends as the vendor ends one at its limit", async () => {
  const words = "word ".repeat(4_000);
  const chunk = { candidates: [{ content: { parts: [{ text: words }], role: "model" } }] };
  const event = `data: ${JSON.stringify(chunk)}\r\n\r\n`;
  gateway.vendor.answer(() => ({
    headers: { "content-type": "text/event-stream" },
    body: Array.from({ length: 200 }, () => event),
  }));
  const poor = await gateway.customer({ balanceNanos: 6_000_000n });
  const response = await ask(":streamGenerateContent?alt=sse", {
    headers: { "x-goog-api-key": poor.key, "x-request-id": "poor" },
  });
  const text = await response.text();
  expect(text).toMatch(/"finishReason":"MAX_TOKENS"[^]*\r\n\r\n$/);
  expect((await gateway.call("poor")).errorCode).toBe("insufficient_balance");
  expect((await gateway.money(poor.accountId)).balance).toBeGreaterThanOrEqual(0n);
});

test("R-ERR-4: a vendor without capacity is reported with its retry-after", async () => {
  const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "21.5s" }];
  const error = { code: 429, status: "RESOURCE_EXHAUSTED", message: "quota", details };
  gateway.vendor.answer(() => ({ status: 429, body: JSON.stringify({ error }) }));
  for (const path of [":generateContent", ":countTokens"]) {
    const response = await ask(path);
    expect([path, response.status, response.headers.get("retry-after")]).toEqual([path, 429, "22"]);
    expect(await response.json()).toMatchObject({ error: { status: "RESOURCE_EXHAUSTED" } });
  }
  expect(gateway.vendor.requests.length).toBe(2);
});

test("R-ERR-3: a model that the vendor does not have is 502, and raises an alarm", async () => {
  gateway.vendor.answer(() => ({ status: 404, body: '{"error": {"code": 404}}' }));
  expect((await ask(":generateContent")).status).toBe(502);
  expect(gateway.log.join("")).toContain('"alarm":"model"');
});
