/** The public listener's HTTP server: what it answers itself. */
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { UnfinishedBodies } from "../../src/core/unfinished-bodies.ts";
import { createHttpServer } from "../../src/facade/http-server.ts";

test("a client that asks for a WebSocket at a malformed host, and has left when it is answered, ends nothing but its connection", async () => {
  const upgrades = { accepts: () => true, onUpgrade: () => expect.fail("was accepted") };
  const server = createHttpServer(() => {}, upgrades, { bodies: new UnfinishedBodies() });
  const request = Object.assign(new IncomingMessage(new Socket()), {
    httpVersion: "1.1",
    rawHeaders: ["Host", "a b"],
    headers: { host: "a b" },
  });
  let answer = "";
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      answer += chunk.toString();
      done(new Error("write ECONNRESET"));
    },
  });
  // Not by events.once: that would listen for the error.
  const closed = new Promise<void>((resolve) => socket.once("close", resolve));
  server.emit("upgrade", request, socket, Buffer.alloc(0));
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(socket.destroyed).toBe(true);
});
