/** A client that does not read stops the vendor, not the gateway's memory. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { streamBufferBytesMax } from "../../../../src/core/limits.ts";
import { flood } from "../../../support/upstream/behaviour.ts";
import { ask, useGateway } from "../../harness.ts";

const fixture = useGateway();

/**
 * Generous estimate of the bytes that kernels and HTTP libraries on three hops buffer besides the
 * gateway.
 */
const elsewhereBytesMax = 16 * 1024 * 1024;

it("the vendor is paused while the client does not read, and stopped when the client leaves", async () => {
  const floodBytes = 256 * 1024 * 1024;
  fixture.upstream.script(flood(floodBytes));
  const { hostname, port } = new URL(fixture.gateway.url);
  const body = JSON.stringify({ ...ask, stream: true });
  const socket = connect(Number(port), hostname);
  socket.pause();
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${fixture.customer.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const request = await fixture.upstream.request(1);
  // Blocked at the same place twice in a row: nothing moves any more.
  let before = -1;
  await expect
    .poll(
      () => {
        const isStill = request.isBlocked && request.writtenBytes === before;
        before = request.writtenBytes;
        return isStill;
      },
      { interval: 100, timeout: 30_000 },
    )
    .toBe(true);
  expect(request.writtenBytes).toBeLessThan(streamBufferBytesMax + elsewhereBytesMax);
  const closed = once(socket, "close");
  socket.destroy();
  await closed;
  expect(await request.left).toBe(true);
});
