/** What a lawful client may do with HTTP, and how requests that violate it are refused. */
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { bodyBytesMax } from "../../src/config/limits.ts";
import { send, sendBytes, sendThenRead } from "../support/raw-http.ts";
import { answer } from "../support/upstream/behaviour.ts";
import { ask, errorOf, useGateway } from "./harness.ts";

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
  it("a body is asked for once nothing else refuses it", async () => {
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

describe("oversized uploads", () => {
  const chunk = Buffer.concat([
    Buffer.from("400000\r\n"),
    Buffer.alloc(0x400000, 0x20),
    Buffer.from("\r\n"),
  ]);

  it("a client that reads nothing before it has sent 150 MiB in chunks gets the 413", async () => {
    const pieces = Array.from({ length: 38 }, () => chunk);
    const bytes = [Buffer.from(head("transfer-encoding: chunked")), ...pieces, "0\r\n\r\n"];
    const { socket, received } = open();
    socket.pause();
    for (const piece of bytes) {
      if (!socket.write(piece)) await new Promise((resolve) => socket.once("drain", resolve));
    }
    socket.resume();
    expect(await received(/request_too_large/)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("an upload that announces 150 MiB and wants the connection closed is refused in the same way", async () => {
    const length = 150 * 1024 * 1024;
    const text = head(`content-length: ${length}`, "connection: close");
    const bytes = Buffer.concat([Buffer.from(text), Buffer.alloc(length, 0x20)]);
    const reply = await sendThenRead(fixture.gateway.url, bytes);
    expect(reply.toString()).toMatch(/^HTTP\/1\.1 413 [\s\S]*request_too_large/);
  });

  it("a client that reads at once has the 413 before it has sent the rest", async () => {
    const { socket, received } = open();
    socket.write(head(`content-length: ${bodyBytesMax + 1}`));
    expect(await received(/request_too_large/)).toMatch(/^HTTP\/1\.1 413 /);
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

it("browsers are told to use https where the public URL does", async () => {
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
