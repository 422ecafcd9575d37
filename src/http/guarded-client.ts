/**
 * Requests to addresses that customers name: webhooks, result files, pictures. One connection for each request,
 * opened by the guard; no redirects, no proxy, no cookies, no compression; one deadline for everything to the
 * reply's head, another one for its body, and an end to the body.
 *
 * Node's own HTTP parser on a socket that is already open, and no pool: whatever resolves or dials by itself
 * could go where nobody looked.
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
  /** Beside `host`, `content-length`, `connection` and `accept-encoding`, which are set here. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent exactly so. Default: none. */
  readonly body?: Uint8Array;
  /** How long name, connection, TLS and the reply's head may take in all, in milliseconds. Default 5,000. */
  readonly headMs?: number;
  /** How long the body may take from then on, in milliseconds. Default 1,000. */
  readonly bodyMs?: number;
  /** The longest body, in bytes. Default 16 KiB. */
  readonly bodyBytesMax?: number;
  /** What a body does that is longer, slower or cut: `cut` ends the reply there, `fail` is a failure.
   * Default `fail`. */
  readonly whenCut?: "cut" | "fail";
  /** Asked at the reply's head whether its body is wanted; where not, it is not read. Default: it is. */
  readonly wants?: (reply: GuardedReply) => boolean;
  /** Takes the body as it comes; the next piece waits for it. Default: the body is dropped. */
  readonly sink?: (bytes: Uint8Array) => Promise<void> | void;
  /** Ends it. Default: nothing does. */
  readonly signal?: AbortSignal;
}

/** What was measured of a request, in milliseconds from its beginning or the step before. */
export interface GuardedTimes extends Readonly<ConnectionTimes> {
  /** From the open connection to the reply's head. */
  readonly firstByteMs: number;
  readonly totalMs: number;
}

/** A reply, whatever its status. */
export interface GuardedReply {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** What came of a request. */
export interface GuardedResult {
  readonly outcome: GuardedReply | GuardFailure;
  readonly times: GuardedTimes;
}

/** Sends requests. */
export interface GuardedClient {
  /** Sends one request. Never rejects: a failure is an outcome, and has its times. */
  send(request: GuardedRequest): Promise<GuardedResult>;
}

const headMsDefault = 5_000;
const bodyMsDefault = 1_000;
const bodyBytesDefault = 16 * 1024;

/** Makes a client. It keeps nothing open. */
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

/** The life of a request: judge the address, connect, ask, read. @throws GuardFailure */
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

/** Sends the request and resolves at the reply's head. */
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
    // A switch of protocols was not asked for; without a listener the socket would just be closed.
    sent.on("upgrade", () => fail(new Error("the other side switched protocols")));
    sent.on("response", (message) => {
      signal.removeEventListener("abort", abort);
      resolve(message);
    });
    if (signal.aborted) abort();
    else sent.end(body);
  });
}

/** Reads the body to its end or its limits. @throws GuardFailure where it must be whole and is not */
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
