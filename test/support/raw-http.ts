/** HTTP as bytes: for everything that an ordinary client would tidy up before a test sees it. */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";

/** A reply as it came. */
export interface RawReply {
  readonly status: number;
  /** By lower-case name; repeated ones joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Whether the connection broke before the body had ended. */
  readonly isCut: boolean;
}

/** The request. */
export interface RawRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Sends a request on a new connection, and reads the reply to its end or break. */
export function send(
  url: string,
  { method = "POST", headers = {}, body }: RawRequest = {},
): Promise<RawReply> {
  const target = new URL(url);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      // The path as written: URL would decode nothing, but tidy up dots.
      {
        host: target.hostname,
        port: target.port,
        path: url.slice(target.origin.length) || "/",
        method,
        headers,
        agent: false,
      },
      (response) => {
        const pieces: Buffer[] = [];
        const done = (): void =>
          resolve({
            status: response.statusCode ?? 0,
            headers: Object.fromEntries(
              Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
            ),
            body: Buffer.concat(pieces),
            isCut: !response.complete,
          });
        response.on("data", (piece: Buffer) => pieces.push(piece));
        response.once("error", done);
        response.once("end", done);
      },
    );
    request.once("error", reject);
    request.end(body);
  });
}

/**
 * Sends these very bytes and resolves with the first reply; for requests that no client would make.
 */
export function sendBytes(url: string, bytes: string | Uint8Array): Promise<RawReply> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const pieces: Buffer[] = [];
    const done = (): void => {
      socket.destroy();
      resolve(parse(Buffer.concat(pieces)));
    };
    socket.on("data", (piece: Buffer) => {
      pieces.push(piece);
      if (isWhole(Buffer.concat(pieces))) done();
    });
    socket.once("end", done);
    socket.once("error", (error) => (pieces.length > 0 ? done() : reject(error)));
    socket.write(bytes);
  });
}

function isWhole(bytes: Buffer): boolean {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString("latin1", 0, end + 2))?.[1];
  return length !== undefined && bytes.length >= end + 4 + Number(length);
}

function parse(bytes: Buffer): RawReply {
  const end = bytes.indexOf("\r\n\r\n");
  const [line = "", ...lines] = bytes.toString("latin1", 0, Math.max(end, 0)).split("\r\n");
  const headers = lines.map((text): [string, string] => {
    const colon = text.indexOf(":");
    return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()];
  });
  return {
    status: Number(line.split(" ")[1] ?? 0),
    headers: Object.fromEntries(headers),
    body: bytes.subarray(end + 4),
    isCut: !isWhole(bytes),
  };
}
