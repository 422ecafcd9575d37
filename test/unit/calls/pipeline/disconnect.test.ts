/** R-MON-11: what a client's disconnect means for the vendor of its call. */
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { CancelSource } from "../../../../src/core/cancel-signal.ts";
import { GatewayStopping } from "../../../../src/core/caller.ts";
import { createHttpClient } from "../../../../src/http/client.ts";
import type { Call } from "../../../../src/calls/pipeline/call.ts";
import { DetachedReplies, DisconnectHandler } from "../../../../src/calls/pipeline/disconnect.ts";

const toTheEnd = Number.POSITIVE_INFINITY;

function openCall({ firstByteMs = 0 } = {}) {
  const endings: CallEnding[] = [];
  const call = { firstByteMs, status: 0, end: (ending: CallEnding) => void endings.push(ending) };
  const [client, detached] = [new CancelSource(), new DetachedReplies()];
  onTestFinished(() => detached.stop());
  const handler = new DisconnectHandler({ client, detached, call: call as unknown as Call });
  return { handler, client, detached, endings };
}

describe("a client that disconnects", () => {
  test("a client that disconnects stops a vendor that does not have the whole request yet, whatever is read to its end", () => {
    const { handler, client, detached } = openCall();
    const vendor = handler.signalFor(toTheEnd);
    client.cancel();
    expect([vendor.aborted, handler.isDetached, detached.count]).toEqual([true, false, 0]);
  });

  test("a client that disconnects leaves a vendor that has the request to its end, where it is read to its end", () => {
    const { handler, client, endings } = openCall();
    const vendor = handler.signalFor(toTheEnd);
    vendor.onSent?.();
    client.cancel();
    expect([vendor.aborted, handler.isDetached]).toEqual([false, true]);
    expect(endings).toEqual([CallEnding.CLIENT_GONE]);
    handler.end();
  });

  test("a client that disconnects stops the next attempt of a call too, until that one was sent", () => {
    const { handler, client } = openCall();
    handler.signalFor(toTheEnd).onSent?.();
    const second = handler.signalFor(toTheEnd);
    client.cancel();
    expect([second.aborted, handler.isDetached]).toEqual([true, false]);
  });

  test.each([
    [0, 0, true],
    [0, 5, true],
    [5_000, 0, true],
    [5_000, 5, false],
  ])(
    "a client disconnects with a grace period of %i ms and content after %i ms, and the vendor is stopped: %s",
    (graceMs, firstByteMs, isStopped) => {
      const { handler, client } = openCall({ firstByteMs });
      const vendor = handler.signalFor(graceMs);
      vendor.onSent?.();
      client.cancel();
      expect(vendor.aborted).toBe(isStopped);
      handler.end();
    },
  );

  test("a client that disconnects is not what a stopping gateway is: that stops every vendor", () => {
    const { handler, client } = openCall({ firstByteMs: 5 });
    const vendor = handler.signalFor(toTheEnd);
    vendor.onSent?.();
    client.cancel(new GatewayStopping());
    expect([vendor.aborted, handler.isDetached]).toEqual([true, false]);
  });
});

describe("a request to a vendor", () => {
  const timeouts = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000 };

  async function listen(server: Server): Promise<number> {
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  }

  function begin(origin: string) {
    const client = createHttpClient(origin, timeouts);
    onTestFinished(() => client.close());
    const sent = { count: 0 };
    const signal = Object.assign(new CancelSource(), { onSent: () => void sent.count++ });
    const body = [Buffer.from("{}")];
    const answer = client.send({ method: "POST", path: "/", headers: {}, body, signal });
    return { answer, signal, sent };
  }

  test("a request to a vendor is not sent while its connection is being made, and then never is", async () => {
    const arrived = Promise.withResolvers<void>();
    const received: Buffer[] = [];
    // Accepts, and never answers the TLS handshake.
    const server = createServer((socket) => {
      onTestFinished(() => void socket.destroy());
      socket
        .on("error", () => {})
        .on("data", (bytes: Buffer) => {
          received.push(bytes);
          arrived.resolve();
        });
    });
    const { answer, signal, sent } = begin(`https://127.0.0.1:${await listen(server)}`);
    const failed = expect(answer).rejects.toMatchObject({ kind: "aborted", isSent: false });
    await arrived.promise;
    signal.cancel();
    await failed;
    expect(sent.count).toBe(0);
    expect(Buffer.concat(received).toString("latin1")).not.toContain("POST");
  });

  test("a request to a vendor says once that it was sent, before the vendor can answer", async () => {
    const server = createHttpServer((request, response) => {
      request.resume().on("end", () => response.end("ok"));
    });
    const { answer, sent } = begin(`http://127.0.0.1:${await listen(server)}`);
    const { body } = await answer;
    expect(sent.count).toBe(1);
    await body.whole(10);
  });
});
