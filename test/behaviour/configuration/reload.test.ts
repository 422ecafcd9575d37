/** Another configuration comes into force while calls run (R-OPS-1). */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { BreakerConfig } from "../../../src/config/config.ts";
import { type Customer, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { gated } from "../lifecycle/served.ts";

let first: Upstream;
let second: Upstream;
let gateway: Gateway;
let customer: Customer;

beforeAll(async () => {
  [first, second] = await Promise.all([startUpstream(), startUpstream()]);
  gateway = await startGateway({ vendors: { sim: vendorAt(first) } });
  customer = await gateway.customer();
});
beforeEach(async () => {
  for (const upstream of [first, second]) upstream.always(answer());
  await gateway.reconfigure({});
});
afterAll(async () => {
  await gateway?.close();
  await Promise.all([first?.close(), second?.close()]);
});

function vendorAt({ baseUrl, secret }: Upstream) {
  return { baseUrl, apiKey: secret };
}

/** A price of output tokens, in USD per 1 M tokens. */
function outputAt(usd: bigint) {
  return { ...priceDefault, output: usd * 1_000_000_000n };
}

async function call(requestId: string, more: object = {}, model = "public-model") {
  return send(`${gateway.url}/v1/chat/completions`, {
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }], ...more }),
  });
}

it("1,000 reloads of prices, vendors and models under load fail no call, and each call is charged at one price", async () => {
  const settings = [
    { vendors: { sim: vendorAt(first) }, models: { "public-model": { price: outputAt(2n) } } },
    { vendors: { sim: vendorAt(second) }, models: { "public-model": { price: outputAt(4n) } } },
  ];
  const done = new AbortController();
  const statuses = new Set<number>();
  const load = [1, 2, 3, 4].map(async (caller) => {
    for (let index = 0; !done.signal.aborted; index++) {
      const { status } = await call(`reload-${caller}-${index}`, { stream: index % 2 === 0 });
      statuses.add(status);
    }
    const record = await gateway.call(`reload-${caller}-0`);
    const outputs = [2n, 4n].map((usd) => 7n * usd * 1_000n + 11n * 250n);
    expect(outputs).toContain(record.cost?.amountNanos);
  });
  for (let index = 0; index < 1_000; index++) {
    const change = settings[index % 2];
    if (change !== undefined) await gateway.reconfigure(change);
  }
  done.abort();
  await Promise.all(load);
  expect([...statuses]).toEqual([200]);
});

it("a stream that runs keeps its model, price and vendor; the next call gets the new ones", async () => {
  const gate = gated();
  first.always(gate.behaviour);
  const running = call("kept", { stream: true });
  await gate.begun;
  await gateway.reconfigure({
    vendors: { other: vendorAt(second) },
    models: { renamed: { price: outputAt(50n) } },
  });
  expect((await call("gone")).status).toBe(404);
  expect((await call("new", {}, "renamed")).status).toBe(200);
  gate.finish();
  const { body, isCut } = await running;
  expect(isCut).toBe(false);
  expect(body.toString()).toMatch(/ and finished[\s\S]*data: \[DONE\]\n\n$/);
  const [kept, next] = await Promise.all([gateway.call("kept"), gateway.call("new")]);
  expect(kept).toMatchObject({ vendor: "sim", cost: { amountNanos: 10n * 250n + 5n * 2_000n } });
  expect(next).toMatchObject({ vendor: "other", cost: { amountNanos: 11n * 250n + 7n * 50_000n } });
});

it("limits and the pages that may call change with the next request", async () => {
  const origin = "https://app.example";
  const preflight = () =>
    send(`${gateway.url}/v1/chat/completions`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
  expect((await preflight()).status).not.toBe(204);
  await gateway.reconfigure({
    limits: { key: { rpm: 1, tpm: undefined, concurrency: undefined } },
    cors: { origins: [origin] },
  });
  expect((await preflight()).status).toBe(204);
  const statuses = [await call("limited-1"), await call("limited-2")].map(({ status }) => status);
  expect(statuses).toEqual([200, 429]);
  await gateway.reconfigure({});
  expect((await call("unlimited")).status).toBe(200);
});

it("a vendor that did not change keeps its breaker, and one that changed starts with a closed one", async () => {
  first.always(({ response }) => void response.writeHead(500).end());
  const breaker: BreakerConfig = {
    failures: 2,
    windowMs: 60_000,
    cooldownMs: 600_000,
    singleRoute: "refuse",
  };
  const vendors = { sim: { ...vendorAt(first), breaker } };
  const retry = { attempts: 1, withinMs: 0 };
  const models = { "public-model": { retry } };
  await gateway.reconfigure({ vendors, models });
  await call("fails-1");
  await call("fails-2");
  const asked = first.requests.length;
  await gateway.reconfigure({ vendors, models: { ...models, another: {} } });
  expect((await call("refused")).status).toBe(503);
  expect(first.requests.length).toBe(asked);
  await gateway.reconfigure({ vendors: { sim: { ...vendors.sim, maxInFlight: 7 } }, models });
  first.always(answer());
  expect((await call("served")).status).toBe(200);
});

it("what waits for a restart is named, and keeps its content until then", async () => {
  const webhooks = { allowHosts: ["receiver.test"], caFile: undefined };
  const { isChanged, needsRestart } = await gateway.reconfigure({ webhooks });
  expect({ isChanged, needsRestart }).toEqual({ isChanged: true, needsRestart: ["webhooks"] });
  expect(await gateway.reconfigure({})).toMatchObject({ needsRestart: [] });
  expect(await gateway.reconfigure({})).toMatchObject({ isChanged: false });
});

it("a native prefix is served as soon as a vendor has it, and no longer when it is removed", async () => {
  const path = "/gemini/v1beta/models";
  const list = () =>
    send(`${gateway.url}${path}`, { method: "GET", headers: { "x-goog-api-key": customer.key } });
  expect((await list()).status).toBe(404);
  await gateway.reconfigure({
    vendors: {
      sim: vendorAt(first),
      gemini: { ...vendorAt(second), kind: "gemini", nativePrefix: "/gemini" },
    },
    models: {
      "public-model": {},
      flash: { routes: [{ vendor: "gemini", model: "gemini-flash" }] },
    },
  });
  const { status, body } = await list();
  expect([status, body.toString()]).toEqual([200, expect.stringContaining("models/gemini-flash")]);
  expect((await send(`${gateway.url}/llms.txt`, { method: "GET" })).body.toString()).toContain(
    "- `/gemini`",
  );
  await gateway.reconfigure({});
  expect((await list()).status).toBe(404);
});
