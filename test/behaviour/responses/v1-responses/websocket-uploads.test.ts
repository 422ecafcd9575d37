/** R-AUTH-7: messages that arrive on WebSockets are counted until they are complete. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { unfinishedBodyBytesMax } from "../../../../src/core/limits.ts";
import { type Gateway, startGateway } from "../../../support/gateway.ts";
import { send } from "../../../support/raw-http.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";
import { type Client, closeClients, connect } from "./websocket-harness.ts";

closeClients();

const mib = 1024 * 1024;
let upstream: Upstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const { baseUrl, secret: apiKey } = upstream;
  gateway = await startGateway({ vendors: { sim: { baseUrl, apiKey } } });
});

afterAll(async () => {
  await gateway?.close();
  await upstream?.close();
});

async function unfinishedBytes(): Promise<number> {
  const { body } = await send(`${gateway.internalUrl}/metrics`, { method: "GET" });
  return Number(/^uas_unfinished_body_bytes (\d+)$/m.exec(body.toString())?.[1]);
}

/** Sends a part of a message, then a ping. Resolves once the gateway has read both. */
async function begin({ socket }: Client, bytes: number): Promise<void> {
  socket.send(Buffer.alloc(bytes, " "), { fin: false, binary: false });
  socket.ping();
  await once(socket, "pong");
}

it("a message in fragments is counted until it is complete, whatever pings come between them", async () => {
  const client = await connect(gateway.url, (await gateway.customer()).key);
  await begin(client, mib);
  expect(await unfinishedBytes()).toBeGreaterThanOrEqual(mib);
  await begin(client, mib);
  expect(await unfinishedBytes()).toBeGreaterThanOrEqual(2 * mib);
  client.socket.send("{}", { fin: true });
  expect(await client.next()).toMatchObject({ type: "error", status: 400 });
  expect(await unfinishedBytes()).toBe(0);
});

it("a message over the budget of its key is refused, and its connection is read no further", async () => {
  const { key } = await gateway.customer();
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect(gateway.url, key)));
  const last = clients.pop() as Client;
  let left = unfinishedBodyBytesMax.owner - mib;
  for (const client of clients) {
    const bytes = Math.min(left, 19 * mib);
    left -= bytes;
    await begin(client, bytes);
  }
  // More than the buffers of both systems take.
  const sent = Promise.withResolvers<Error | undefined>();
  last.socket.send(Buffer.alloc(19 * mib, " "), { fin: false, binary: false }, sent.resolve);
  expect(await last.next()).toMatchObject({ type: "error", status: 429 });
  expect(await last.closed).toMatchObject({ code: 1013 });
  expect(await sent.promise).toBeInstanceOf(Error);
  for (const client of clients) client.socket.terminate();
  await expect.poll(unfinishedBytes).toBe(0);
});
