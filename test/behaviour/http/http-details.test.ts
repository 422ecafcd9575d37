/** HTTP features that a valid client may use, and refusals of invalid requests. */
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { bodyBytesMax } from "../../../src/core/limits.ts";
import { send, sendBytes } from "../../support/raw-http.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { ask, errorOf, useGateway } from "../harness.ts";

const fixture = useGateway(() => ({ settings: { publicUrl: "https://ai.example" } }));
const path = "/v1/chat/completions";

/** The head of a chat completion. */
function head(...lines: string[]): string {
  const key = `authorization: Bearer ${fixture.customer.key}`;
  const all = [`POST ${path} HTTP/1.1`, "host: x", key, "content-type: application/json", ...lines];
  return `${all.join("\r\n")}\r\n\r\n`;
}

function bodyOf(more: object = {}): string {
  return JSON.stringify({ ...ask, ...more });
}

/** A connection whose received text can be waited for. */
function open(): { socket: Socket; received: (pattern: RegExp) => Promise<string> } {
  const { hostname, port } = new URL(fixture.gateway.url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.on("error", () => {});
  socket.on("data", (piece: Buffer) => (text += piece.toString("latin1")));
  return {
    socket,
    async received(pattern) {
      await expect.poll(() => text).toMatch(pattern);
      return text;
    },
  };
}

describe("Expect: 100-continue", () => {
  it("a body is requested once all other checks have passed", async () => {
    const { socket, received } = open();
    const body = bodyOf();
    socket.write(head("expect: 100-continue", `content-length: ${body.length}`));
    expect(await received(/\r\n\r\n/)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    socket.write(body);
    await received(/HTTP\/1\.1 200 OK[\s\S]*Hello there!/);
  });

  it.each([
    ["an excessive length", 413, () => head("expect: 100-continue", "content-length: 99999999")],
    [
      "a wrong key",
      401,
      () =>
        head("expect: 100-continue", "content-length: 9").replace(fixture.customer.key, "uas_no"),
    ],
    [
      "a path that does not exist",
      404,
      () => head("expect: 100-continue", "content-length: 9").replace(path, "/v1/nothing"),
    ],
  ])(
    "a request with %s that expects 100-continue is refused with %i without 100, and the connection closes",
    async (_name, status, text) => {
      const { socket, received } = open();
      const ended = new Promise((resolve) => socket.once("end", resolve));
      socket.write(text());
      const reply = await received(/\}$/);
      expect(reply).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(reply).not.toContain("100 Continue");
      if (status !== 404) await ended;
    },
  );

  it("any other expectation is 417 with a body of ours", async () => {
    const reply = await sendBytes(fixture.gateway.url, head("expect: tea", "content-length: 2"));
    expect(reply.status).toBe(417);
    expect(errorOf(reply)).toMatchObject({ code: "invalid_request" });
  });
});

describe("the Host header", () => {
  it.each([
    ["none", "GET /v1/models HTTP/1.1\r\n\r\n"],
    ["two", "GET /v1/models HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n"],
    ["an empty text", "GET /v1/models HTTP/1.1\r\nhost: \r\n\r\n"],
    ["two words", "GET /v1/models HTTP/1.1\r\nhost: a b\r\n\r\n"],
  ])("a request with %s as Host header is a 400 with a body of ours", async (_name, text) => {
    const reply = await sendBytes(fixture.gateway.url, text);
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({
      code: "invalid_request",
      type: "invalid_request_error",
    });
    expect(reply.headers["connection"]).toBe("close");
  });

  it("HTTP/1.0 needs no Host header", async () => {
    const { socket, received } = open();
    socket.write("GET /healthz HTTP/1.0\r\n\r\n");
    await received(/^HTTP\/1\.1 200 OK[\s\S]*ok\n$/);
  });
});

describe("refused uploads", () => {
  const mib = 1024 * 1024;
  const piece = Buffer.alloc(mib, 0x20);
  const chunk = Buffer.concat([Buffer.from("100000\r\n"), piece, Buffer.from("\r\n")]);

  /** Sends pieces of a body for as long as the gateway takes them. Resolves to how much it took. */
  async function sendAll(socket: Socket, text: string, next: Buffer): Promise<number> {
    const isOver = new Promise<boolean>((resolve) => {
      socket.once("close", () => resolve(true));
    });
    socket.write(text);
    for (let at = 0; at < 150; at++) {
      const isSent = new Promise<boolean>((resolve) => {
        socket.write(next, () => resolve(false));
      });
      if (await Promise.race([isSent, isOver])) break;
    }
    return socket.bytesWritten - socket.writableLength;
  }

  it.each([
    ["in chunks", () => head("transfer-encoding: chunked"), chunk],
    ["with its length", () => head(`content-length: ${150 * mib}`), piece],
    ["and no more", () => head(`content-length: ${150 * mib}`, "connection: close"), piece],
  ])(
    "an upload of 150 MiB %s gets its 413, and is not read to its end",
    async (_name, text, next) => {
      const { socket, received } = open();
      const sent = await sendAll(socket, text(), next);
      expect(await received(/request_too_large/)).toMatch(/^HTTP\/1\.1 413 /);
      expect(sent).toBeLessThan(64 * mib);
    },
  );

  it("a client that reads at once has the 413 before it has sent the rest", async () => {
    const { socket, received } = open();
    socket.write(head(`content-length: ${bodyBytesMax + 1}`));
    expect(await received(/request_too_large/)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it.each([
    ["whole", () => Buffer.alloc(40 * mib, 0x20)],
    ["streamed", () => ReadableStream.from(Array.from({ length: 40 }, () => piece))],
  ])("fetch gets the 413 of a body of 40 MiB that it sends %s", async (_name, body) => {
    const options: RequestInit & { duplex: "half" } = {
      method: "POST",
      headers: {
        authorization: `Bearer ${fixture.customer.key}`,
        "content-type": "application/json",
      },
      body: body(),
      duplex: "half",
    };
    const reply = await fetch(`${fixture.gateway.url}${path}`, options);
    expect([reply.status, await reply.text()]).toEqual([
      413,
      expect.stringContaining("request_too_large"),
    ]);
  });

  it("an upload with a wrong key gets its 401, and is not read to its end (R-AUTH-7)", async () => {
    const { socket, received } = open();
    const text = head(`content-length: ${19 * mib}`).replace(fixture.customer.key, "uas_no");
    const sent = await sendAll(socket, text, piece);
    expect(await received(/Invalid API Key/)).toMatch(/^HTTP\/1\.1 401 /);
    expect(sent).toBeLessThan(19 * mib);
  });
});

describe("a client that closes its sending side", () => {
  it.each([{ stream: false }, { stream: true }])(
    "a client that closes its sending side gets its reply: %o",
    async (more) => {
      const { socket, received } = open();
      const body = bodyOf(more);
      socket.end(head(`content-length: ${body.length}`) + body);
      await received(more.stream ? /200 OK[\s\S]*\[DONE\]/ : /200 OK[\s\S]*Hello there!/);
    },
  );

  it.each([{ stream: false }, { stream: true }])(
    "a client that closes its sending side and then disconnects stops the vendor as any other: %o",
    async (more) => {
      const hang = more.stream ? { cutAfter: 3, ending: "hang" as const } : { delayMs: 60_000 };
      fixture.upstream.script(answer(hang));
      const { socket } = open();
      const body = bodyOf(more);
      socket.end(head(`content-length: ${body.length}`) + body);
      await expect.poll(() => fixture.upstream.requests.length).toBe(1);
      socket.destroy();
      expect(await fixture.upstream.last().left).toBe(true);
    },
  );
});

it("browsers get Strict-Transport-Security if the public URL is https", async () => {
  for (const [where, method] of [
    ["/healthz", "GET"],
    ["/v1/nothing", "POST"],
    ["/console", "GET"],
  ] as const) {
    const reply = await send(`${fixture.gateway.url}${where}`, { method });
    expect(reply.headers["strict-transport-security"]).toBe("max-age=31536000");
  }
  const reply = await fixture.chat(ask);
  expect(reply.status).toBe(200);
  expect(reply.headers["strict-transport-security"]).toBe("max-age=31536000");
});
