/** R-AUTH-7: messages that arrive on WebSockets are counted until they are complete. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { unfinishedBodyBytesMax } from "../../../../src/core/limits.ts";
import { ArrivingMessages } from "../../../../src/edge/bodies/arriving-messages.ts";
import {
  type UnfinishedBody,
  UnfinishedBodies,
} from "../../../../src/edge/bodies/unfinished-bodies.ts";
import { readFrameHead } from "../../../../src/edge/websocket/connection.ts";
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
  let left = unfinishedBodyBytesMax.key - mib;
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

/** A frame as clients send it. */
function frame(kind: number, length: number): Buffer {
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = kind;
  if (length < 126) head[1] = 0x80 | length;
  else if (length < 65_536) {
    head[1] = 0x80 | 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, Buffer.alloc(4 + length)]);
}

const kinds = { final: 0x81, first: 0x01, middle: 0x00, last: 0x80, ping: 0x89 };

it.each([1, 7, 1_000, Number.POSITIVE_INFINITY])(
  "frames are told apart wherever their pieces begin: of %d bytes",
  (pieceBytes) => {
    const bodies = new UnfinishedBodies();
    const opened: UnfinishedBody[] = [];
    const arriving = new ArrivingMessages(readFrameHead, () => {
      opened.push(bodies.open({ onRefused: () => {} }));
      return opened.at(-1) as UnfinishedBody;
    });
    const push = (...frames: readonly Buffer[]): void => {
      const bytes = Buffer.concat(frames);
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        arriving.push(bytes.subarray(at, at + pieceBytes));
      }
    };
    for (const length of [0, 125, 126, 65_535, 65_536]) {
      push(frame(kinds.ping, 5), frame(kinds.final, length), frame(kinds.ping, 0));
      expect(bodies.bytes).toBe(0);
      push(frame(kinds.first, length), frame(kinds.ping, 125), frame(kinds.middle, 300));
      expect(bodies.bytes).toBeGreaterThanOrEqual(length + 300);
      push(frame(kinds.ping, 125));
      expect(bodies.bytes).toBeGreaterThanOrEqual(length + 300);
      push(frame(kinds.last, 5), frame(kinds.first, 9).subarray(0, 10));
      expect(bodies.bytes).toBeGreaterThanOrEqual(4);
      push(frame(kinds.first, 9).subarray(10), frame(kinds.last, 0));
      expect(bodies.bytes).toBe(0);
    }
  },
);

it("what a message is kept in is counted, too: one of tiny fragments takes a hundred times its length", () => {
  const bodies = new UnfinishedBodies();
  const arriving = new ArrivingMessages(readFrameHead, () => bodies.open({ onRefused: () => {} }));
  arriving.push(frame(kinds.first, 1));
  for (let i = 0; i < 1_000; i++) arriving.push(frame(kinds.middle, 1));
  expect(bodies.bytes).toBeGreaterThan(100_000);
  arriving.close();
  expect(bodies.bytes).toBe(0);
});
