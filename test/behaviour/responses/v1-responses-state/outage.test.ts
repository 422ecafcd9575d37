/**
 * The database hangs, and does not even fail: no call waits for what is kept between calls
 * (R-MON-7).
 */
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Customer, type Gateway, startGateway } from "../../../support/gateway.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { answer } from "../../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";

const model = "public-model";
let gateway: Gateway;
let upstream: Upstream;
let customer: Customer;
let proxy: FaultProxy;
let openai: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    vendors: { sim: { baseUrl: upstream.baseUrl, apiKey: upstream.secret } },
    databaseAt: async (url) => {
      proxy = await startFaultProxy(url);
      return proxy.url;
    },
  });
  customer = await gateway.customer();
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: customer.key, maxRetries: 0 });
});
afterAll(async () => {
  proxy?.resume();
  await gateway?.close();
  await upstream?.close();
  await proxy?.close();
});

it("a stream gets its end although it cannot be kept", async () => {
  upstream.script(answer({ text: ["a", "b", "c", "d"], gapMs: 50 }));
  const stream = await openai.responses.create({ model, input: "x", stream: true });
  const types: string[] = [];
  let hungMs = 0;
  try {
    for await (const event of stream) {
      types.push(event.type);
      if (event.type !== "response.output_text.delta" || hungMs > 0) continue;
      hungMs = performance.now();
      proxy.hang();
    }
  } finally {
    proxy.resume();
  }
  expect(types.at(-1)).toBe("response.completed");
  expect(performance.now() - hungMs).toBeLessThan(15_000);
  await expect
    .poll(() => gateway.log.filter((line) => line.includes("a reply could not be stored")).length)
    .toBe(1);
});

it("a request that refers to stored objects is refused within a second, free of charge", async () => {
  const first = await openai.responses.create({ model, input: "x" });
  await expect.poll(async () => (await gateway.money(customer.accountId)).held).toBe(0n);
  const before = upstream.requests.length;
  proxy.hang();
  const startMs = performance.now();
  const going = openai.responses.create({ model, input: "y", previous_response_id: first.id });
  try {
    await expect(going).rejects.toMatchObject({ status: 503 });
    expect(performance.now() - startMs).toBeLessThan(15_000);
  } finally {
    proxy.resume();
  }
  expect(upstream.requests).toHaveLength(before);
});
