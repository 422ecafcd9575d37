import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { GuardFailure } from "../../../src/http/guard-failure.ts";
import { createGuardedClient, type GuardedResult } from "../../../src/http/guarded-client.ts";
import { ca, type Receiver, startReceiver } from "../../support/receiver.ts";

function kindOf({ outcome }: GuardedResult): string {
  return outcome instanceof GuardFailure ? outcome.kind : `status ${outcome.status}`;
}

describe("a guarded request", () => {
  let receiver: Receiver;
  const listed = { allowHosts: ["localhost"], ca: [ca] };
  const client = createGuardedClient(listed);
  const post = { method: "POST", body: Buffer.from('{"é":1}') } as const;

  beforeAll(async () => void (receiver = await startReceiver()));
  afterAll(() => receiver.close());
  beforeEach(() => receiver.behave((_received, response) => void response.writeHead(204).end()));

  it("a guarded request sends exactly the bytes, and says how long what took", async () => {
    const headers = {
      "content-type": "application/json",
      "x-a": "1",
      host: "evil",
      connection: "x",
    };
    const { outcome, times } = await client.send({
      ...post,
      headers,
      url: `${receiver.origin}/a?b=c#d`,
    });
    expect(outcome).toMatchObject({ status: 204 });
    const last = receiver.received.at(-1);
    expect(last).toMatchObject({ path: "/a?b=c", body: post.body });
    expect(last?.headers).toEqual({
      host: `localhost:${receiver.port}`,
      "accept-encoding": "identity",
      connection: "close",
      "content-length": "8",
      "content-type": "application/json",
      "x-a": "1",
    });
    expect(times.addressClass).toBe("listed");
    expect(times.connectMs > 0 && times.tlsMs > 0 && times.firstByteMs > 0).toBe(true);
    expect(times.totalMs).toBeGreaterThanOrEqual(times.connectMs + times.tlsMs + times.firstByteMs);
  });

  it("a guarded request follows no redirect", async () => {
    const target = await startReceiver();
    for (const status of [301, 302, 303, 307, 308]) {
      receiver.behave((_received, response) => {
        response.writeHead(status, { location: `${target.origin}/` }).end();
      });
      expect(kindOf(await client.send({ ...post, url: receiver.origin }))).toBe(`status ${status}`);
    }
    expect(target.connections()).toBe(0);
    await target.close();
  });

  it("proxies of the environment are not used", async () => {
    const proxy = await startReceiver();
    vi.stubEnv("HTTPS_PROXY", proxy.origin);
    vi.stubEnv("ALL_PROXY", proxy.origin);
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    try {
      expect(kindOf(await client.send({ ...post, url: receiver.origin }))).toBe("status 204");
      expect(proxy.connections()).toBe(0);
    } finally {
      vi.unstubAllEnvs();
      await proxy.close();
    }
  });

  it("a certificate that is not trusted, or of another host, ends at TLS", async () => {
    const distrusting = createGuardedClient({ allowHosts: ["localhost"] });
    expect(kindOf(await distrusting.send({ ...post, url: receiver.origin }))).toBe("tls");
    const misled = createGuardedClient({
      allowHosts: ["localhost.localdomain", "127.0.0.2"],
      ca: [ca],
    });
    const other = await misled.send({ ...post, url: `https://127.0.0.2:${receiver.port}/` });
    expect(["tls", "connect"]).toContain(kindOf(other));
  });

  it("one deadline covers everything to the head, and the body has its own", async () => {
    receiver.behave(() => {});
    const hung = await client.send({ ...post, url: receiver.origin, headMs: 50 });
    expect(kindOf(hung)).toBe("timeout");
    receiver.behave((_received, response) => {
      response.writeHead(200);
      response.write("never ends");
    });
    const asked = { ...post, url: receiver.origin, bodyMs: 50 } as const;
    expect(kindOf(await client.send(asked))).toBe("timeout");
    expect(kindOf(await client.send({ ...asked, whenCut: "cut" }))).toBe("status 200");
  });

  it("a body that trickles is ended by the deadline, not kept alive by its bytes", async () => {
    receiver.behave((_received, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write("x"), 5);
      response.on("close", () => clearInterval(drip));
    });
    expect(kindOf(await client.send({ ...post, url: receiver.origin, bodyMs: 60 }))).toBe(
      "timeout",
    );
  });

  it("the body ends at its limit, and the sink gets no byte more", async () => {
    receiver.behave((_received, response) => void response.end("x".repeat(5_000)));
    for (const whenCut of ["cut", "fail"] as const) {
      let bytes = 0;
      const sink = async (piece: Uint8Array): Promise<void> => void (bytes += piece.length);
      const asked = { ...post, url: receiver.origin, bodyBytesMax: 1_000, whenCut, sink };
      const result = await client.send(asked);
      expect(kindOf(result)).toBe(whenCut === "cut" ? "status 200" : "too_large");
      expect(bytes).toBe(1_000);
    }
    let whole = "";
    const sink = (piece: Uint8Array): void => void (whole += Buffer.from(piece).toString());
    await client.send({ method: "GET", url: receiver.origin, sink });
    expect(whole).toHaveLength(5_000);
  });

  it("broken replies are resets, and a large head is one too", async () => {
    const breaking: readonly ((socket: Socket) => void)[] = [
      (socket) => socket.destroy(),
      (socket) => socket.end("garbage\r\n\r\n"),
      (socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(20_000)}\r\n\r\n`),
      (socket) =>
        socket.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
      (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort"),
    ];
    for (const breakIt of breaking) {
      receiver.behave((_received, response) => void (response.socket && breakIt(response.socket)));
      expect(kindOf(await client.send({ ...post, url: receiver.origin }))).toBe("reset");
    }
  });

  it("interim replies are no replies", async () => {
    receiver.behave((_received, response) => {
      response.writeEarlyHints({ link: "</x>; rel=preload" });
      response.writeHead(201).end();
    });
    expect(kindOf(await client.send({ ...post, url: receiver.origin }))).toBe("status 201");
  });

  it("who asked can end it at any time", async () => {
    receiver.behave(() => {});
    const ending = new AbortController();
    const sent = client.send({ ...post, url: receiver.origin, signal: ending.signal });
    await receiver.arrived(receiver.received.length + 1);
    ending.abort();
    expect(kindOf(await sent)).toBe("aborted");
    expect(
      kindOf(await client.send({ ...post, url: receiver.origin, signal: ending.signal })),
    ).toBe("aborted");
  });

  it("a server that never answers TLS is a timeout, and its connection is closed", async () => {
    const silent = createServer();
    const closed = new Promise((resolve) =>
      silent.once("connection", (socket) => socket.resume().once("close", resolve)),
    );
    await new Promise<void>((resolve) => silent.listen(0, "localhost", resolve));
    const { port } = silent.address() as AddressInfo;
    const asked = { ...post, url: `https://localhost:${port}/`, headMs: 50 };
    expect(kindOf(await client.send(asked))).toBe("timeout");
    await closed;
    await new Promise((resolve) => silent.close(resolve));
  });

  it("a port without a listener is a failed connection", async () => {
    expect(kindOf(await client.send({ ...post, url: "https://localhost:6/" }))).toBe("connect");
  });
});
