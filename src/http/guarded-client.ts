/**
 * HTTP client for addresses that customers name: webhooks, result files, images. The SSRF guard opens one
 * connection per request. There are no redirects, proxies, cookies or compression; one deadline covers everything
 * up to the reply's head, another the body, and the body's length is limited.
 *
 * It uses Node's own HTTP parser on an open socket, without a pool: any library that resolves names or connects by
 * itself could reach an address that was not checked.
 */
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { createSecureContext, type TLSSocket } from "node:tls";
import { headerBytesMax } from "../config/limits.ts";
import { GuardFailure } from "./guard-failure.ts";
import {
  type ConnectionTimes,
  type GuardOptions,
  type OpenOptions,
  openGuarded,
} from "./guarded-connection.ts";
import { readPublicUrl } from "./public-url.ts";

/** A request. */
export interface GuardedRequest {
  readonly method: "GET" | "HEAD" | "POST";
  readonly url: string;
  /** Headers in addition to `host`, `content-length`, `connection` and `accept-encoding`, which are set here. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent unchanged. Default: no body. */
  readonly body?: Uint8Array;
  /** Deadline for DNS, connection, TLS and the reply's head together, in milliseconds. Default 5,000. */
  readonly headMs?: number;
  /** Deadline for the body after the head, in milliseconds. Default 1,000. */
  readonly bodyMs?: number;
  /** Longest body in bytes. Default 16 KiB. */
  readonly bodyBytesMax?: number;
  /**
   * For a body that is too long, too slow or broken off: `cut` ends the reply there, `fail` reports a failure.
   * Default `fail`.
   */
  readonly whenCut?: "cut" | "fail";
  /** Decides at the reply's head whether to read the body. Default: read it. */
  readonly wants?: (reply: GuardedReply) => boolean;
  /** Receives the body; the next piece waits for its promise. Default: the body is dropped. */
  readonly sink?: (bytes: Uint8Array) => Promise<void> | void;
  /** Cancels the request. Default: never. */
  readonly signal?: AbortSignal;
}

/** Durations in milliseconds, each from the start or from the previous step. */
export interface GuardedTimes extends Readonly<ConnectionTimes> {
  /** From the open connection to the reply's head. */
  readonly firstByteMs: number;
  readonly totalMs: number;
}

/** A reply, whatever its status. */
export interface GuardedReply {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** The result of a request. */
export interface GuardedResult {
  readonly outcome: GuardedReply | GuardFailure;
  readonly times: GuardedTimes;
}

/** Sends guarded requests. */
export interface GuardedClient {
  /** Sends one request. Never rejects: failures are results too, with their durations. */
  send(request: GuardedRequest): Promise<GuardedResult>;
}

const headMsDefault = 5_000;
const bodyMsDefault = 1_000;
const bodyBytesDefault = 16 * 1024;

/** Creates a client. It keeps no connection open. */
export function createGuardedClient(given: GuardOptions = {}): GuardedClient {
  const ca = given.ca && { ca: [...given.ca] };
  const secureContext = createSecureContext({ ...ca, minVersion: "TLSv1.2" });
  const options = { ...given, secureContext };
  return {
    async send(request) {
      const times = {
        dnsMs: 0,
        connectMs: 0,
        tlsMs: 0,
        firstByteMs: 0,
        addressClass: "none" as const,
      };
      const begun = performance.now();
      const outcome = await exchange(request, options, times).catch((error: unknown) =>
        error instanceof GuardFailure ? error : new GuardFailure("reset", String(error), error),
      );
      return { outcome, times: { ...times, totalMs: performance.now() - begun } };
    },
  };
}

type Times = ConnectionTimes & { firstByteMs: number };

/** Performs a request: check the address, connect, send, read. @throws GuardFailure */
async function exchange(
  request: GuardedRequest,
  options: OpenOptions,
  times: Times,
): Promise<GuardedReply> {
  const read = readPublicUrl(request.url, options.allowHosts);
  if ("problem" in read) {
    times.addressClass = "blocked";
    throw new GuardFailure("blocked_address", read.problem);
  }
  const deadline = AbortSignal.timeout(request.headMs ?? headMsDefault);
  const signal = request.signal ? AbortSignal.any([deadline, request.signal]) : deadline;
  const socket = await openGuarded(read.url, { options, signal, times });
  try {
    const begun = performance.now();
    const message = await ask(socket, { url: read.url, request, signal });
    times.firstByteMs = performance.now() - begun;
    const reply = { status: message.statusCode ?? 0, headers: message.headers };
    if (request.wants?.(reply) ?? true) await readBody(message, request);
    return reply;
  } finally {
    socket.destroy();
  }
}

interface Ask {
  readonly url: URL;
  readonly request: GuardedRequest;
  readonly signal: AbortSignal;
}

/** Sends the request and resolves with the reply's head. */
function ask(socket: TLSSocket, { url, request, signal }: Ask): Promise<IncomingMessage> {
  const { method, headers = {}, body } = request;
  return new Promise((resolve, reject) => {
    const sent: ClientRequest = httpRequest({
      createConnection: () => socket,
      method,
      path: `${url.pathname}${url.search}`,
      setHost: false,
      maxHeaderSize: headerBytesMax,
      headers: {
        ...headers,
        host: url.host,
        "accept-encoding": "identity",
        connection: "close",
        ...(body && { "content-length": String(body.length) }),
      },
    });
    const fail = (error: unknown): void => {
      signal.removeEventListener("abort", abort);
      sent.destroy();
      reject(GuardFailure.of(error, "reset", signal));
    };
    const abort = (): void => fail(signal.reason);
    signal.addEventListener("abort", abort);
    sent.on("error", fail);
    // An unrequested protocol switch; without this listener Node would just close the socket.
    sent.on("upgrade", () => fail(new Error("the other side switched protocols")));
    sent.on("response", (message) => {
      signal.removeEventListener("abort", abort);
      resolve(message);
    });
    if (signal.aborted) abort();
    else sent.end(body);
  });
}

/** Reads the body up to its end or its limits. @throws GuardFailure where it must be complete and is not */
async function readBody(message: IncomingMessage, request: GuardedRequest): Promise<void> {
  const { bodyMs = bodyMsDefault, bodyBytesMax = bodyBytesDefault, sink } = request;
  const deadline = AbortSignal.timeout(bodyMs);
  const signal = request.signal ? AbortSignal.any([deadline, request.signal]) : deadline;
  const stop = (): void => void message.destroy();
  signal.addEventListener("abort", stop);
  let bytesLeft = bodyBytesMax;
  try {
    for await (const bytes of message as AsyncIterable<Buffer>) {
      if (bytes.length > bytesLeft) {
        if (bytesLeft > 0) await sink?.(bytes.subarray(0, bytesLeft));
        throw new GuardFailure("too_large", `the body is longer than ${bodyBytesMax} bytes`);
      }
      bytesLeft -= bytes.length;
      await sink?.(bytes);
    }
    if (!message.complete) throw new Error("the body was cut");
  } catch (error) {
    const failure = GuardFailure.of(error, "reset", signal);
    if (request.whenCut !== "cut" || failure.kind === "aborted") throw failure;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
