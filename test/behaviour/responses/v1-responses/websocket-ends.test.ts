/**
 * Ends of WebSockets without a close: by the gateway, by age, and by a peer that has gone or does
 * not read.
 */
import { once } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { webSocketCheckMs, webSocketMax } from "../../../../src/config/web-socket-limits.ts";
import { publicModel, startGateway } from "../../../support/gateway.ts";
import { answer, flood } from "../../../support/upstream/behaviour.ts";
import { heldBack } from "../../../support/upstream/held-back.ts";
import { startUpstream } from "../../../support/upstream/upstream.ts";
import { newRequestId } from "../../harness.ts";
import { closeClients, connect } from "./websocket-harness.ts";

closeClients();

const started: { close(): Promise<void> }[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const each of started.splice(0).reverse()) await each.close();
});

async function start() {
  const upstream = await startUpstream();
  started.push(upstream);
  const { baseUrl, secret: apiKey } = upstream;
  const gateway = await startGateway({ vendors: { sim: { baseUrl, apiKey } } });
  started.push(gateway);
  const { key } = await gateway.customer();
  return { upstream, gateway, key };
}

const request = { model: publicModel, input: "Hi" };

describe("when the gateway stops", () => {
  it("an idle connection is closed at once", async () => {
    const { gateway, key } = await start();
    const client = await connect(gateway.url, key);
    await gateway.app.close();
    expect(await client.closed).toMatchObject({ code: 1001 });
  });

  it("what runs is completed first, and what waits is not served", async () => {
    const { gateway, upstream, key } = await start();
    let goOn = (): void => {};
    const until = new Promise<void>((resolve) => (goOn = resolve));
    upstream.script(heldBack(answer(), { part: 0.5, until }));
    const id = newRequestId();
    const client = await connect(gateway.url, key, { headers: { "x-request-id": id } });
    client.create(request);
    await upstream.request(1);
    client.create(request);
    const closing = gateway.app.close();
    goOn();
    const messages = await client.until("response.completed");
    expect(messages.at(-1)).toMatchObject({ type: "response.completed" });
    expect(await client.closed).toMatchObject({ code: 1001 });
    await closing;
    expect(upstream.requests).toHaveLength(1);
  });

  it("what runs too long is cut with an error, and charged", async () => {
    const { gateway, upstream, key } = await start();
    const text = ["12345678", "abcdefgh", "x", "y"];
    upstream.script(answer({ text, cutAfter: 3, ending: "hang" }));
    const client = await connect(gateway.url, key);
    client.create(request);
    await client.until("response.output_text.delta");
    await gateway.app.close({ drainMs: 0 });
    const rest = await client.until();
    expect(rest.at(-1)).toMatchObject({ type: "error", status: 503 });
    expect(await client.closed).toMatchObject({ code: 1001 });
  });
});

describe("a check", () => {
  it("cuts a connection whose peer does not answer pings", async () => {
    const { gateway, key } = await start();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const client = await connect(gateway.url, key, { autoPong: false });
    const pinged = once(client.socket, "ping");
    await vi.advanceTimersByTimeAsync(webSocketCheckMs);
    await pinged;
    await vi.advanceTimersByTimeAsync(webSocketCheckMs);
    expect(await client.closed).toMatchObject({ code: 1006 });
  });

  it("a check closes a connection that is an hour old, in the words that clients know", async () => {
    const { gateway, key } = await start();
    const now = performance.now();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"], now });
    const client = await connect(gateway.url, key);
    const checks = Math.ceil(webSocketMax.ageMs / webSocketCheckMs) + 1;
    for (let i = 0; i < checks && client.socket.readyState === client.socket.OPEN; i++) {
      const pinged = Promise.race([once(client.socket, "ping"), client.closed]);
      await vi.advanceTimersByTimeAsync(webSocketCheckMs);
      await pinged;
      // The pong has to arrive before the next check.
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await client.next()).toMatchObject({
      error: { code: "websocket_connection_limit_reached" },
    });
    expect(await client.closed).toMatchObject({ code: 1001 });
  });

  it("a check closes a connection whose key was disabled", async () => {
    const { gateway } = await start();
    const { key, keyId } = await gateway.customer();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const client = await connect(gateway.url, key);
    await gateway.keys.disableKey({ keyId });
    const headers = { authorization: `Bearer ${key}` };
    const status = async () => (await fetch(`${gateway.url}/v1/models`, { headers })).status;
    await vi.waitUntil(async () => (await status()) === 401);
    await vi.advanceTimersByTimeAsync(webSocketCheckMs);
    expect(await client.closed).toMatchObject({ code: 1008 });
  });
});

it("a client that does not read pauses the vendor, and its call ends when it leaves", async () => {
  const { gateway, upstream, key } = await start();
  upstream.script(flood(256 * 1024 * 1024));
  const id = newRequestId();
  const client = await connect(gateway.url, key, { headers: { "x-request-id": id } });
  client.socket.pause();
  client.create(request);
  const sent = await upstream.request(1);
  let before = -1;
  const isStill = (): boolean => {
    const still = sent.isBlocked && sent.writtenBytes === before;
    before = sent.writtenBytes;
    return still;
  };
  await expect.poll(isStill, { interval: 100, timeout: 30_000 }).toBe(true);
  expect(sent.writtenBytes).toBeLessThan(32 * 1024 * 1024);
  client.socket.terminate();
  expect((await gateway.call(id)).ending).toBe(CallEnding.CLIENT_GONE);
});
