/**
 * R-AUTH-7: what a client sends slowly or not at all holds no connection for long, on either
 * listener.
 */
import { once } from "node:events";
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { BodyBudget } from "../../../src/edge/bodies/body-budget.ts";
import { openInternalListener } from "../../../src/edge/rpc/internal-listener.ts";

function open(url: string, text: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write(text);
  return socket;
}

describe("the head of a request", () => {
  /** A listener that waits shortly for it. */
  async function listen(): Promise<string> {
    const stopping = new AbortController();
    const listener = await openInternalListener({
      address: { host: "127.0.0.1", port: 0 },
      headMs: 1_000,
      services: [],
      interceptors: [],
      requestGate: async () => {},
      bodies: new BodyBudget(),
      shutdownSignal: stopping.signal,
      page: async () => undefined,
    });
    onTestFinished(async () => {
      const closed = listener.close();
      listener.destroy();
      await closed;
    });
    return listener.url;
  }

  it("a head that does not end gets 408 on the internal listener, and its connection ends", async () => {
    const socket = open(await listen(), "GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ");
    const [reply] = (await once(socket, "data")) as [Buffer];
    expect(reply.toString()).toMatch(/^HTTP\/1\.1 408 /);
    await once(socket, "close");
  });

  it("a connection over HTTP/2 without a request ends; one that had a request may be silent", async () => {
    const url = await listen();
    const open2 = (): ClientHttp2Session => {
      const session = connectHttp2(url);
      session.on("error", () => {});
      onTestFinished(() => session.destroy());
      return session;
    };
    const used = open2();
    expect(await statusOf(used)).toBe(404);
    await once(open2(), "close");
    expect(await statusOf(used)).toBe(404);
  });
});

async function statusOf(session: ClientHttp2Session): Promise<number | undefined> {
  const stream = session.request({ ":path": "/none" });
  stream.resume();
  const [headers] = (await once(stream, "response")) as [Record<string, number>];
  await once(stream, "close");
  return headers[":status"];
}
