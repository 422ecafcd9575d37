/** Reads the head and the body of a request, and discards bodies. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { presentedKey, type Caller } from "../../core/caller.ts";
import { emptyBody, bodyTooLarge, formTooLarge, wrongLength } from "./errors.ts";
import type { RestRoute } from "./route-table.ts";
import { bodyBytesMax } from "../../core/limits.ts";
import { uploadMax } from "../../config/upload-limits.ts";
import { countMemory } from "../../core/body-memory.ts";
import { emptyBuffer, joinAndFree } from "../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { type BodyBudget, checkBodySize } from "../bodies/body-budget.ts";
import { discardBody } from "../bodies/discarded-body.ts";

/** A header, which may have been sent several times, as one text. */
export function headerText(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(", ") : header;
}

/** The value of the query parameter `api-key`, or of another one. */
export function queryKey(url: string, name = "api-key"): string | undefined {
  const at = url.indexOf("?");
  if (at < 0) return undefined;
  return new URLSearchParams(url.slice(at + 1)).get(name) ?? undefined;
}

/** The query to forward, without the key. */
export function passedQuery(url: string): string {
  const at = url.indexOf("?");
  if (at < 0) return "";
  const pairs = url.slice(at + 1).split("&");
  return pairs.filter((pair) => !new URLSearchParams(pair).has("api-key")).join("&");
}

/** A key, and whether it was in the URL. */
export interface PresentedKey {
  /** Undefined if no key was sent. */
  readonly key: string | undefined;
  readonly isInUrl: boolean;
}

/** Reads the key from the platform's three places. */
export function platformKeyOf({
  headers,
  url = "",
}: Pick<IncomingMessage, "headers" | "url">): PresentedKey {
  const query = queryKey(url);
  const key = presentedKey({
    authorization: headers.authorization,
    apiKeyHeader: headerText(headers["x-api-key"]),
    apiKeyQuery: query,
  });
  return { key, isInUrl: query !== undefined };
}

type Head = Pick<IncomingMessage, "headers" | "url">;

/** The headers of these names that were sent once. */
export function namedHeaders(
  sent: IncomingHttpHeaders,
  names: Iterable<string>,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of names) {
    const value = sent[name];
    if (typeof value === "string") headers[name] = value;
  }
  return headers;
}

/**
 * Reads the fields of an RPC with a body in a wire style.
 *
 * @param forwarded the headers to forward, by lower-case name
 * @throws GatewayError INVALID_REQUEST if the body is missing
 */
export function readWireRequest(
  { headers: sent, url = "" }: Head,
  body: unknown,
  { route, forwarded }: { readonly route: RestRoute; readonly forwarded: ReadonlySet<string> },
) {
  if (!Buffer.isBuffer(body) || body.length === 0) throw emptyBody();
  const headers = namedHeaders(sent, forwarded);
  const { dialect } = route;
  const { path, alwaysStream, platformAliases, compact } = route.route;
  const query = passedQuery(url);
  return { dialect, path, query, headers, body, alwaysStream, platformAliases, compact };
}

/** Joins a body that arrived in several pieces. */
function joined(pieces: readonly Buffer[]): Buffer {
  const body = joinAndFree(pieces);
  countMemory(body);
  return body;
}

/** Options of {@link readBody}. */
export interface ReadBodyOptions {
  readonly bodies: BodyBudget;
  /**
   * The caller whose budget the body uses until it is complete, and who determines its maximum
   * length. Undefined for a vendor's callback.
   */
  readonly caller: Caller | undefined;
}

/**
 * Reads a whole body; empty if there is none. The bytes are copied, because the pieces are in the
 * socket's memory. The copy of a long body is counted, so that it is freed when its call ends:
 * core/body-memory.ts. A client that waits for permission to send (`expect: 100-continue`) receives
 * it here, once nothing else can refuse the request.
 *
 * @throws GatewayError REQUEST_TOO_LARGE, before reading if the length is announced;
 * INVALID_REQUEST if the body is incomplete; RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE over a
 * budget
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { bodies, caller }: ReadBodyOptions,
): Promise<Buffer> {
  const announced = announcedBytes(request, caller);
  if (isWaiting(request)) {
    response.writeContinue();
    delete request.headers.expect;
  }
  return new Promise((resolve, reject) => {
    let first: Buffer | undefined;
    let others: Buffer[] | undefined;
    let size = 0;
    // The listeners stay: removing four costs more than their calls at the request's end.
    let isOver = false;
    const refuse = (error: GatewayError): void => {
      isOver = true;
      body.close();
      // The listeners stay until the request ends, since its remaining bytes are still discarded.
      // They must not keep these bodies in memory.
      first = others = undefined;
      request.pause();
      reject(error);
    };
    const onData = (piece: Buffer): void => {
      if (isOver) return undefined;
      size += piece.length;
      if (first === undefined) first = piece;
      else if (others === undefined) others = [first, piece];
      else others.push(piece);
      if (size > bodyBytesMax) return refuse(bodyTooLarge());
      // Most bodies are complete with their first piece, and never count.
      if (size === announced) return undefined;
      try {
        return body.keep(piece.length);
      } catch (error) {
        return refuse(error as GatewayError);
      }
    };
    const onEnd = (): void => {
      if (isOver) return;
      isOver = true;
      body.close();
      if (announced !== undefined && size !== announced) reject(wrongLength());
      else if (others !== undefined) resolve(joined(others));
      else resolve(first === undefined ? emptyBuffer : Buffer.from(first));
    };
    const onCut = (cause?: unknown): void => {
      if (isOver) return;
      isOver = true;
      body.close();
      const text = "The HTTP request is malformed";
      reject(new GatewayError(ErrorCode.INVALID_REQUEST, text, { cause }));
    };
    const body = bodies.open(caller);
    request.on("data", onData);
    request.on("end", onEnd);
    request.on("error", onCut);
    request.on("close", onCut);
  });
}

/**
 * The announced length of a body; undefined if none is announced.
 *
 * @throws GatewayError REQUEST_TOO_LARGE
 */
function announcedBytes(
  { headers }: IncomingMessage,
  caller: Caller | undefined,
): number | undefined {
  const length = headers["content-length"];
  if (length === undefined) return undefined;
  const announced = Number(length);
  if (announced > bodyBytesMax) throw bodyTooLarge();
  checkBodySize(announced, caller);
  return announced;
}

/** A form that is read while it arrives. */
export interface ArrivingForm {
  /** With its boundary. */
  readonly contentType: string;
  /**
   * @throws GatewayError INVALID_REQUEST if it is incomplete; RATE_LIMIT_EXCEEDED or
   * SERVICE_UNAVAILABLE over a budget
   */
  readonly pieces: AsyncIterable<Uint8Array>;
}

/**
 * Opens a form. Its reader may stop early: the connection stays open for the reply.
 *
 * @throws GatewayError REQUEST_TOO_LARGE if the announced length is too large
 */
export function openForm(
  request: IncomingMessage,
  response: ServerResponse,
  options: ReadBodyOptions,
): ArrivingForm {
  const { "content-length": length = "0", "content-type": contentType = "" } = request.headers;
  if (Number(length) > uploadMax.bytes) throw formTooLarge();
  if (isWaiting(request)) {
    response.writeContinue();
    delete request.headers.expect;
  }
  return { contentType, pieces: piecesOf(request, options) };
}

async function* piecesOf(
  request: IncomingMessage,
  { bodies, caller }: ReadBodyOptions,
): AsyncIterable<Uint8Array> {
  const form = bodies.open(caller);
  try {
    form.keep(uploadMax.memoryBytes);
    yield* request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
  } finally {
    form.close();
  }
}

/** A reply with known head, length and body. */
interface KnownReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Sends a reply while the request's body still arrives, then drops the rest of a short body. A long
 * body is not read further: after a pause in which the client reads the reply, the connection is
 * closed. Never rejects.
 */
export async function replyBeforeBodyEnds(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: KnownReply,
): Promise<void> {
  const length = { "content-length": String(body.length) };
  if (isWaiting(request)) {
    // It is unknown whether the client still sends the body, so the next bytes on the connection
    // cannot be interpreted.
    response.writeHead(status, { ...headers, ...length, connection: "close" });
    response.end(body);
    return;
  }
  response.writeHead(status, { ...headers, ...length });
  // The client has the whole body by its length. The end follows later, because it may close the
  // connection.
  response.write(body);
  if (await discardBody(request)) response.end();
  else response.destroy();
}

/** Whether the client waits for `100 Continue` before it sends the body. */
function isWaiting({ headers }: IncomingMessage): boolean {
  return headers.expect !== undefined;
}
