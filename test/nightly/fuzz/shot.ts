/** One request of the fuzzer: what is sent, byte for byte, and how its client behaves. */

import { messageFrames } from "./web-socket-frames.ts";

/** A JSON value that is mutated. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A request before it becomes bytes. Mutations change it in place. */
export interface Shot {
  /** The entry point; see samples.ts. */
  readonly entry: string;
  readonly listener: "public" | "internal";
  /** Over HTTP/2 by a real client; else over HTTP/1.1 as bytes. */
  isHttp2: boolean;
  /**
   * Whether the request opens a WebSocket; its body is then sent as a message, once the gateway has
   * agreed.
   */
  isWebSocket: boolean;
  method: string;
  target: string;
  headers: [name: string, value: string][];
  /** The body as a tree; `undefined` if it never was JSON, or is bytes already. */
  json: Json | undefined;
  body: Buffer;
  framing: Framing;
  /** Number of equal pieces in which the bytes are sent. */
  pieces: number;
  /** After which part of the bytes the client stops sending, from 0 to 1; undefined after all. */
  cutAt: number | undefined;
  /** The client's action after it has sent everything. */
  then: "read" | "half-close" | "reset";
  /** The client disconnects after so many bytes of the reply. */
  readMax: number;
  /** The client disconnects after so many milliseconds: views of what happens do not end. */
  readMs: number;
  /** Replaces everything above: these bytes are sent as they are. */
  raw: Buffer | undefined;
  /** Whether a correct server must answer without further bytes. */
  isFramed: boolean;
}

/** Framing of the body. */
export type Framing = "length" | "chunked" | "wrong-length" | "bad-chunks" | "none";

/** A valid request of an entry point. */
export function newShot(
  entry: string,
  parts: Partial<Omit<Shot, "entry">> & Pick<Shot, "target">,
): Shot {
  return {
    entry,
    listener: "public",
    isHttp2: false,
    isWebSocket: false,
    method: "POST",
    json: undefined,
    body: Buffer.alloc(0),
    framing: "length",
    pieces: 1,
    cutAt: undefined,
    then: "read",
    readMax: Infinity,
    readMs: Infinity,
    raw: undefined,
    isFramed: true,
    ...parts,
    headers: [["host", "fuzz"], ...(parts.headers ?? [])],
  };
}

/** Writes the tree as the body. */
export function writeJson(shot: Shot): void {
  if (shot.json === undefined) return;
  shot.body = Buffer.from(JSON.stringify(shot.json));
  shot.json = undefined;
}

/** Sets a header, whatever its case; `undefined` removes it. */
export function setHeader(shot: Shot, name: string, value: string | undefined): void {
  shot.headers = shot.headers.filter(([each]) => each.toLowerCase() !== name);
  if (value !== undefined) shot.headers.push([name, value]);
}

/** Returns the value of a header; empty if there is none. */
export function headerOf(shot: Shot, name: string): string {
  return shot.headers.find(([each]) => each.toLowerCase() === name)?.[1] ?? "";
}

/** Returns the bytes of the request over HTTP/1.1; for a WebSocket also those of its message. */
export function bytesOf(shot: Shot): Buffer {
  if (shot.raw !== undefined) return shot.raw;
  if (shot.isWebSocket) return Buffer.concat([headOf(shot), messageFrames(shot)]);
  const { method, body, framing } = shot;
  const head = (more: string): Buffer => headOf(shot, more);
  if (framing === "chunked" || framing === "bad-chunks") {
    return Buffer.concat([head("transfer-encoding: chunked\r\n"), chunked(body, framing)]);
  }
  if (framing === "none") return Buffer.concat([head(""), body]);
  const length =
    framing === "length" ? body.length : body.length + (body.length % 2 === 0 ? 7 : -3);
  const isBare = framing === "length" && body.length === 0 && method === "GET";
  return Buffer.concat([head(isBare ? "" : `content-length: ${length}\r\n`), body]);
}

/** The head of a request over HTTP/1.1. */
export function headOf({ method, target, headers }: Shot, more = ""): Buffer {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join("")}${more}\r\n`, "latin1");
}

function chunked(body: Buffer, framing: Framing): Buffer {
  const half = body.length >> 1;
  const chunks = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0);
  const parts = chunks.flatMap((chunk) => [
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from("\r\n"),
  ]);
  if (framing === "chunked") return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
  // An invalid size, a size beyond every limit, or no end.
  const broken = ["zz\r\n", "ffffffffffffffff\r\nx", "-5\r\n", ""][body.length % 4] ?? "";
  return Buffer.concat([...parts, Buffer.from(broken)]);
}

/** A command that repeats the request. */
export function commandOf(shot: Shot, address: string): string {
  const { hostname, port } = new URL(address);
  const isPlain = shot.raw === undefined && shot.framing === "length" && shot.cutAt === undefined;
  const isText = Buffer.from(shot.body.toString()).equals(shot.body) && !shot.body.includes(0);
  if (isPlain && isText && (shot.isHttp2 || shot.then === "read")) {
    const headers = shot.headers.map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
    const version = shot.isHttp2 ? "--http2-prior-knowledge " : "";
    const url = quote(`http://${hostname}:${port}${shot.target}`);
    const data = shot.body.length > 0 ? ` --data-binary ${quote(shot.body.toString())}` : "";
    return `curl -i --path-as-is ${version}-X ${shot.method} ${headers.join(" ")}${data} ${url}`;
  }
  const bytes = bytesOf(shot);
  const sent = shot.cutAt === undefined ? bytes : bytes.subarray(0, bytes.length * shot.cutAt);
  const close = shot.then === "reset" ? " (then the client resets the connection)" : "";
  return `base64 -d <<< ${sent.toString("base64")} | nc -q 5 ${hostname} ${port}${close}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
