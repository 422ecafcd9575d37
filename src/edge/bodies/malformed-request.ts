/** Finds and answers requests that violate HTTP; they never reach a route. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Socket } from "node:net";
import { headerBytesMax, headMs, requestMs } from "../../core/limits.ts";
import { inertHeaders } from "../inert-reply.ts";

/** An error reply whose body is not written yet. */
export interface PlainError {
  readonly status: number;
  readonly message: string;
}

export const jsonType = "application/json; charset=utf-8";

const malformed: PlainError = {
  status: 400,
  message: "The HTTP request is malformed or incomplete",
};

const parserErrors: Readonly<Record<string, PlainError>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    message: `The request head is longer than ${headerBytesMax} bytes`,
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    message: `The request did not arrive in time: send its head within ${headMs / 1_000} s, and all of it within ${requestMs / 1_000} s`,
  },
};

/**
 * Creates the listener of a server's `clientError`.
 *
 * @param bodyOf writes the error as JSON, in the style of the listener
 */
export function clientErrorListener(
  bodyOf: (message: string) => string,
): (error: NodeJS.ErrnoException, socket: Socket) => void {
  return (error, socket) => {
    const running = runningOn(socket);
    // During a reply, another reply would be read as a part of it; after it, as the reply to the
    // next request.
    const isReplied = running === undefined ? isBodyOpen(socket) : running.headersSent;
    if (error.code === "ECONNRESET" || !socket.writable || isReplied) {
      socket.destroy();
      return;
    }
    const { status, message } = parserErrors[error.code ?? ""] ?? malformed;
    socket.end(wholeReply(status, bodyOf(message)));
  };
}

/**
 * Checks the `Host` of a request, which Node's parser does not; over HTTP/2 it is the `:authority`.
 * An invalid host must be refused (RFC 9112, 3.2), and Connect cannot build a URL from it.
 *
 * @returns the error for a request without exactly one valid host; undefined for others
 */
export function hostProblem(request: IncomingMessage | Http2ServerRequest): string | undefined {
  const { rawHeaders, httpVersion } = request;
  const host = "authority" in request ? request.authority : request.headers.host;
  if (host === undefined) {
    return httpVersion === "1.0" ? undefined : "The header `host` is missing: HTTP requires it";
  }
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === "host") count++;
  }
  if (count > 1) return "The header `host` occurs twice: send it once";
  // A path or a user would pass as parts of the URL.
  if (!/[\s/\\?#@]/.test(host) && URL.canParse(`http://${host}`)) return undefined;
  return "The header `host` is malformed: send HOST or HOST:PORT";
}

/** A whole reply as bytes, for connections without a response; it closes the connection. */
export function wholeReply(status: number, json: string): string {
  const headers = {
    ...inertHeaders,
    "content-type": jsonType,
    "content-length": Buffer.byteLength(json),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${json}`;
}

/** The reply that is being sent on a connection. */
export function runningOn(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

/** Whether the body of a request with a valid head has not arrived completely. */
function isBodyOpen(socket: Socket): boolean {
  const { parser } = socket as Socket & { parser?: { incoming?: IncomingMessage | null } | null };
  return parser?.incoming?.complete === false;
}
