/** Free work takes no capacity from calls that are paid for (R-LIM-2). */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { RawReply } from "../../support/raw-http.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { json, useGateway } from "../harness.ts";

const counted = '{"input_tokens": 2095}';
const running: { vendor?: PlainVendor } = {};
/** Holds the vendor's counts back until it is resolved. */
let counts = Promise.withResolvers<void>();

beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: "" }));
});
beforeEach(() => {
  counts = Promise.withResolvers();
  vendor().requests.length = 0;
  vendor().answer = async ({ url }) => {
    if (!url.endsWith("/count_tokens")) return { body: message };
    await counts.promise;
    return { body: counted };
  };
});
afterAll(() => running.vendor?.close());

function vendor(): PlainVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

const message = JSON.stringify({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-vendor",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 5, output_tokens: 1 },
});

const onePerMinute = { rpm: 1, tpm: undefined, concurrency: undefined };
const credential = { name: "main", apiKey: "sk-counting", priority: 0, weight: 1 };

function anthropic(path: string) {
  return { baseUrl: `${vendor().url}${path}`, apiKey: "sk-counting", kind: "anthropic" } as const;
}

const fixture = useGateway(() => ({
  settings: { maxConcurrentCalls: 2 },
  vendors: {
    wide: { baseUrl: vendor().url, apiKey: "sk-counting", kind: "anthropic" },
    narrow: { baseUrl: vendor().url, apiKey: "sk-counting", kind: "anthropic", maxInFlight: 2 },
    limited: { ...anthropic("/limited"), credentials: [{ ...credential, limits: onePerMinute }] },
    main: anthropic("/main"),
    backup: anthropic("/backup"),
  },
  models: {
    limited: { routes: [{ vendor: "limited", model: "claude-vendor" }] },
    ...Object.fromEntries(
      ["failing", "pausing"].map((model) => [
        model,
        {
          routes: [
            { vendor: "main", model },
            { vendor: "backup", model },
          ],
        },
      ]),
    ),
    wide: { routes: [{ vendor: "wide", model: "claude-vendor" }] },
    narrow: { routes: [{ vendor: "narrow", model: "claude-vendor" }] },
  },
}));

const asked = (model: string) => ({ model, messages: [{ role: "user", content: "Hello" }] });

function count(key: string, model = "wide"): Promise<RawReply> {
  const body = JSON.stringify(asked(model));
  const headers = { authorization: `Bearer ${key}` };
  return fixture.send("/v1/messages/count_tokens", { headers, body });
}

function call(model: string): Promise<RawReply> {
  const body = JSON.stringify({ ...asked(model), max_tokens: 10 });
  return fixture.send("/v1/messages", { body });
}

it("token counts of an account without balance take no room of paid calls (R-LIM-2)", async () => {
  const { key } = await fixture.gateway.customer({ balanceNanos: 0n });
  const held = [count(key), count(key)];
  await expect.poll(() => vendor().requests.length).toBe(2);
  const beyond = await count(key);
  expect([beyond.status, beyond.headers["retry-after"]]).toEqual([503, "1"]);
  const paid = await call("wide");
  expect(paid.status, paid.body.toString()).toBe(200);
  counts.resolve();
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
});

it("token counts leave half of a vendor's max_in_flight to paid calls, and are estimated beyond (R-LIM-2)", async () => {
  const { key } = fixture.customer;
  const held = count(key, "narrow");
  await expect.poll(() => vendor().requests.length).toBe(1);
  const estimated = json(await count(key, "narrow"));
  expect(estimated["input_tokens"]).not.toBe(2095);
  expect(vendor().requests).toHaveLength(1);
  expect((await call("narrow")).status).toBe(200);
  counts.resolve();
  expect(json(await held)["input_tokens"]).toBe(2095);
});

/** Returns the paths of the vendors' requests. */
function paths(): string[] {
  return vendor().requests.map(({ url }) => url);
}

it("token counts that fail say nothing about calls: the route takes the next one, and its breaker stays closed (R-LIM-2)", async () => {
  vendor().answer = ({ url }) =>
    url.endsWith("/count_tokens") ? { status: 500, body: "{}" } : { body: message };
  for (let i = 0; i < 20; i++)
    expect((await count(fixture.customer.key, "failing")).status).toBe(200);
  expect(new Set(paths())).toEqual(
    new Set(["/main/v1/messages/count_tokens", "/backup/v1/messages/count_tokens"]),
  );
  vendor().requests.length = 0;
  expect((await call("failing")).status).toBe(200);
  expect(paths()).toEqual(["/main/v1/messages"]);
});

it("a vendor that asks counts to slow down gets none for that time, and all calls (R-LIM-2)", async () => {
  vendor().answer = ({ url }) =>
    url.endsWith("/count_tokens")
      ? { status: 429, headers: { "retry-after": "60" }, body: "{}" }
      : { body: message };
  for (let i = 0; i < 3; i++)
    expect((await count(fixture.customer.key, "pausing")).status).toBe(200);
  expect(paths()).toEqual(["/main/v1/messages/count_tokens", "/backup/v1/messages/count_tokens"]);
  vendor().requests.length = 0;
  expect((await call("pausing")).status).toBe(200);
  expect(paths()).toEqual(["/main/v1/messages"]);
});

it("token counts take nothing of a credential's limits (R-LIM-2)", async () => {
  counts.resolve();
  for (let i = 0; i < 3; i++) {
    expect(json(await count(fixture.customer.key, "limited"))["input_tokens"]).toBe(2095);
  }
  expect((await call("limited")).status).toBe(200);
  expect((await call("limited")).status).not.toBe(200);
});
