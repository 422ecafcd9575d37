/**
 * R-AUTH-7: callers are identified by the head of a request, before a byte of its body is read, on
 * every edge.
 */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { NativeService } from "../../../gen/uas/native/v1/native_service_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { anonymousMessageBytesMax, unfinishedBodyBytesMax } from "../../../src/core/limits.ts";
import { send } from "../../support/raw-http.ts";
import { bearer, useGateway } from "./harness.ts";

const fixture = useGateway();
const countTokens = `/${InferenceService.typeName}/CountTokens`;
const exchange = `/${InferenceService.typeName}/Exchange`;

/**
 * Sends bytes, and resolves with the first that come back. The rest of the request is never sent.
 */
async function firstReply(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.write(text);
  const [piece] = (await once(socket, "data")) as [Buffer];
  return piece.toString("latin1");
}

function headOf(path: string, type: string, ...more: string[]): string {
  const lines = [`POST ${path} HTTP/1.1`, "host: x", `content-type: ${type}`, ...more];
  return `${[...lines, "content-length: 20000000"].join("\r\n")}\r\n\r\n`;
}

describe("a wrong key is refused before the first byte of the body", () => {
  it.each([
    ["url", "/v1/chat/completions", "application/json", "401 "],
    ["url", "/api/ai/tasks", "application/json", "401 "],
    ["url", countTokens, "application/json", "401 "],
    ["url", countTokens, "application/proto", "401 "],
    ["url", exchange, "application/connect+json", '"code":"unauthenticated"'],
    ["url", exchange, "application/grpc-web+proto", "grpc-status: 16"],
    ["internalUrl", countTokens, "application/json", "401 "],
    ["internalUrl", exchange, "application/connect+proto", '"code":"unauthenticated"'],
    ["internalUrl", exchange, "application/grpc-web+proto", "grpc-status: 16"],
  ] as const)(
    "a wrong key is refused before the first byte of the body: %s %s as %s",
    async (at, path, type, expected) => {
      const reply = await firstReply(
        fixture.gateway[at],
        headOf(path, type, "authorization: Bearer uas_wrong"),
      );
      expect(reply).toContain(expected);
    },
  );

  it("a wrong key is refused before the first byte of the body: gRPC over HTTP/2", async () => {
    const session = connectHttp2(fixture.gateway.internalUrl);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ":method": "POST",
      ":path": exchange,
      "content-type": "application/grpc",
      authorization: "Bearer uas_wrong",
      te: "trailers",
    });
    stream.resume();
    const ended = once(stream, "trailers") as Promise<[Record<string, string>]>;
    const [trailers] = await ended;
    expect(trailers["grpc-status"]).toBe("16");
  });

  it("a wrong key is refused before the first byte of the body: the console, by its cookie", async () => {
    const { url } = fixture.gateway;
    const reply = await firstReply(
      url,
      headOf(
        "/console/rpc/uas.key.v1.KeyService/ListKeys",
        "application/json",
        "sec-fetch-site: same-origin",
        "cookie: uas_console=wrong",
      ),
    );
    expect(reply).toContain("401 ");
    expect(reply).toContain("Not signed in");
  });
});

describe("compressed requests", () => {
  const body = gzipSync(JSON.stringify({ dialect: "DIALECT_RESPONSES", body: "AAAA" }));
  const headers = () => ({
    ...bearer(fixture.customer.key),
    "content-type": "application/json",
    "content-encoding": "gzip",
  });

  it("compressed requests are refused on the public listener with the reason", async () => {
    const reply = await send(`${fixture.gateway.url}${countTokens}`, { headers: headers(), body });
    expect(reply.status).toBe(400);
    expect(JSON.parse(reply.body.toString())).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("must not be compressed") as string,
    });
    const { url } = fixture.gateway;
    const query = `?encoding=json&compression=gzip&base64=1&message=${body.toString("base64url")}`;
    const get = await send(`${url}/${InferenceService.typeName}/ListModels${query}`, {
      method: "GET",
      headers: bearer(fixture.customer.key),
    });
    expect(get.body.toString()).toContain("must not be compressed");
  });

  it("compressed requests are read on the internal one", async () => {
    const { internalUrl } = fixture.gateway;
    const reply = await send(`${internalUrl}${countTokens}`, { headers: headers(), body });
    expect(reply.body.toString()).not.toContain("compressed");
  });
});

it("no caller without a key sends large messages, announced or in chunks", async () => {
  const url = `${fixture.gateway.url}/${NativeService.typeName}/FollowLink`;
  const body = JSON.stringify({ prefix: "/p", token: "x".repeat(anonymousMessageBytesMax) });
  const type = { "content-type": "application/connect+json" };
  const framed = Buffer.concat([Buffer.alloc(5), Buffer.from(body)]);
  framed.writeUInt32BE(body.length, 1);
  for (const form of [
    { "content-length": String(framed.length) },
    { "transfer-encoding": "chunked" },
  ]) {
    const reply = await send(url, { headers: { ...type, ...form }, body: framed });
    expect(reply.body.toString()).toContain("A message without a key or a session");
  }
});

it("uploads that never end get 429 at the budget of their key, and cost others nothing", async () => {
  const { gateway, customer } = fixture;
  const { hostname, port } = new URL(gateway.url);
  const piece = Buffer.alloc(19 * 1024 * 1024, 0x20);
  const text = headOf(
    "/v1/chat/completions",
    "application/json",
    `authorization: Bearer ${customer.key}`,
  );
  const sockets = Array.from(
    { length: Math.ceil(unfinishedBodyBytesMax.owner / piece.length) },
    () => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      onTestFinished(() => void socket.destroy());
      socket.write(text);
      socket.write(piece);
      return socket;
    },
  );
  const [reply] = (await Promise.race(sockets.map((socket) => once(socket, "data")))) as [Buffer];
  expect(reply.toString()).toMatch(/^HTTP\/1\.1 429 [\s\S]*64 MiB for this API key/);
  const other = await gateway.customer();
  const models = await send(`${gateway.url}/v1/models`, {
    method: "GET",
    headers: bearer(other.key),
  });
  expect(models.status).toBe(200);
  for (const socket of sockets) socket.destroy();
  await expect.poll(unfinishedBytes).toBe(0);
});

async function unfinishedBytes(): Promise<number> {
  const metrics = await send(`${fixture.gateway.internalUrl}/metrics`, { method: "GET" });
  return Number(/^uas_unfinished_body_bytes (\d+)$/m.exec(metrics.body.toString())?.[1]);
}

/** Opens a stream of messages, which is not ended. */
function reflect(headers: Readonly<Record<string, string>> = {}) {
  const session = connectHttp2(fixture.gateway.internalUrl);
  onTestFinished(() => session.destroy());
  return session.request({
    ":method": "POST",
    ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
}

/** The head of a message. */
function envelope(bytes: number): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes, 1);
  return head;
}

it("no caller without a key sends a large message on a stream", async () => {
  const stream = reflect();
  stream.resume();
  stream.write(envelope(20 * 1024 * 1024));
  stream.write(Buffer.alloc(anonymousMessageBytesMax + 1));
  const [trailers] = (await once(stream, "trailers")) as [Record<string, string>];
  expect(decodeURIComponent(trailers["grpc-message"] ?? "")).toContain(
    "A message without a key or a session",
  );
});

it("reflection is served under its older name, too", async () => {
  const session = connectHttp2(fixture.gateway.internalUrl);
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "content-type": "application/grpc",
    te: "trailers",
  });
  // ServerReflectionRequest { list_services: "" }
  stream.end(Buffer.from([0, 0, 0, 0, 2, 0x3a, 0x00]));
  const pieces = await Array.fromAsync(stream as AsyncIterable<Buffer>);
  expect(Buffer.concat(pieces).toString("latin1")).toContain(InferenceService.typeName);
});
