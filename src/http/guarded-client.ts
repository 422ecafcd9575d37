/**
 * HTTP client for addresses that customers name: webhooks, result files, images. It opens one
 * connection per request, only to addresses that were checked (SSRF). There are no redirects,
 * proxies, cookies or compression; one deadline covers everything up to the reply's head, another
 * the body, and the body's length is limited.
 */
import type { LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { connect as connectTls, createSecureContext, type SecureContext } from "node:tls";
import { Client, type buildConnector, type Dispatcher } from "undici";
import { limitTime } from "../core/async.ts";
import { headerBytesMax } from "../core/limits.ts";
import { type AddressOptions, findAddresses } from "./checked-addresses.ts";
import { GuardFailure, type GuardFailureKind } from "./guard-failure.ts";
import { canonicalAddress } from "./public-address.ts";
import { literalAddress, readPublicUrl } from "./public-url.ts";

/** A request. */
export interface GuardedRequest {
  readonly method: "GET" | "HEAD" | "POST";
  readonly url: string;
  /**
   * Headers in addition to `host`, `content-length`, `connection` and `accept-encoding`, which are
   * set here.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent unchanged. No body by default. */
  readonly body?: Uint8Array;
  /** Deadline for DNS, connection, TLS and the reply's head together. Default 5,000. */
  readonly headMs?: number;
  /** Deadline for the body after the head. Default 1,000. */
  readonly bodyMs?: number;
  /** Maximum length of the body. Default 16 KiB. */
  readonly bodyBytesMax?: number;
  /**
   * For a body that is too long, too slow or incomplete: `cut` ends the reply there, `fail` reports
   * a failure. Default `fail`.
   */
  readonly whenCut?: "cut" | "fail";
  /** Decides at the reply's head whether to read the body. By default it is read. */
  readonly wants?: (reply: GuardedReply) => boolean;
  /** Receives the body; the next piece waits for its promise. By default the body is dropped. */
  readonly sink?: (bytes: Uint8Array) => Promise<void> | void;
  /** Cancels the request. Never by default. */
  readonly signal?: AbortSignal;
}

/** Durations of the steps, each from the previous one; 0 for steps that were not reached. */
export interface GuardedTimes extends Readonly<StepTimes> {
  /** From the start to the end of the request. */
  readonly totalMs: number;
}

interface StepTimes {
  dnsMs: number;
  connectMs: number;
  tlsMs: number;
  /** From the open connection to the reply's head. */
  firstByteMs: number;
  addressClass: AddressClass;
}

/**
 * Class of the address reached, which does not reveal it. `listed`: a host that the operator
 * exempted.
 */
type AddressClass = "none" | "public_ipv4" | "public_ipv6" | "listed" | "blocked";

/** A reply of any status. */
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

/** Options of a client. */
export interface GuardOptions extends AddressOptions {
  /** Trusted certificates, in PEM. The certificates of Node.js by default. */
  readonly ca?: readonly string[];
}

const headMsDefault = 5_000;
const bodyMsDefault = 1_000;
const bodyBytesDefault = 16 * 1024;

/** Creates a client. It keeps no connection open. */
export function createGuardedClient(options: GuardOptions = {}): GuardedClient {
  // Shared by all connections, because parsing certificates takes milliseconds.
  const ca = options.ca && { ca: [...options.ca] };
  const secureContext = createSecureContext({ ...ca, minVersion: "TLSv1.2" });
  return {
    async send(request) {
      const times: StepTimes = {
        dnsMs: 0,
        connectMs: 0,
        tlsMs: 0,
        firstByteMs: 0,
        addressClass: "none",
      };
      const begun = performance.now();
      const outcome = await exchange(request, { options, secureContext, times }).catch(
        (error: unknown) => GuardFailure.of(error, "reset"),
      );
      return { outcome, times: { ...times, totalMs: performance.now() - begun } };
    },
  };
}

interface ExchangeContext {
  readonly options: GuardOptions;
  readonly secureContext: SecureContext;
  readonly times: StepTimes;
}

/** Performs a request: check the address, connect, send, read. @throws GuardFailure */
async function exchange(
  request: GuardedRequest,
  { options, secureContext, times }: ExchangeContext,
): Promise<GuardedReply> {
  const read = readPublicUrl(request.url, options.allowHosts);
  if ("problem" in read) {
    times.addressClass = "blocked";
    throw new GuardFailure("blocked_address", read.problem);
  }
  const { url } = read;
  using limit = limitTime(request.headMs ?? headMsDefault, request.signal ? [request.signal] : []);
  const { signal } = limit;
  const begun = performance.now();
  const addresses = await findAddresses(url.hostname, options, signal).catch((error: unknown) => {
    const failure = GuardFailure.of(error, "dns", signal);
    if (failure.kind === "blocked_address") times.addressClass = "blocked";
    throw failure;
  });
  times.dnsMs = performance.now() - begun;
  const isListed = options.allowHosts?.includes(url.hostname) === true;
  if (isListed) times.addressClass = "listed";
  const connection = new CheckedConnection(url, { addresses, isListed, secureContext, times });
  const client = new Client(url.origin, {
    connect: connection.open,
    allowH2: false,
    maxHeaderSize: headerBytesMax,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const stop = (): void => void client.destroy(asError(signal.reason)).catch(() => {});
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    const reply = await client.request(requestOptions(url, request)).catch((error: unknown) => {
      throw GuardFailure.of(error, connection.step, signal);
    });
    signal.removeEventListener("abort", stop);
    times.firstByteMs = performance.now() - connection.openedAt;
    // An unread body fails when the client is destroyed.
    reply.body.on("error", () => {});
    const head = { status: reply.statusCode, headers: reply.headers };
    if (request.wants?.(head) ?? true) await readBody(reply.body, request);
    return head;
  } finally {
    signal.removeEventListener("abort", stop);
    connection.close();
    void client.destroy().catch(() => {});
  }
}

function requestOptions(url: URL, request: GuardedRequest): Dispatcher.RequestOptions {
  const { connection: _connection, ...headers } = request.headers ?? {};
  return {
    method: request.method,
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, host: url.host, "accept-encoding": "identity" },
    body: request.body ?? null,
    // Sends `connection: close`.
    reset: true,
  };
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

interface ConnectionOptions {
  readonly addresses: readonly string[];
  readonly isListed: boolean;
  readonly secureContext: SecureContext;
  readonly times: StepTimes;
}

/** One TLS connection to a checked address of a host. */
class CheckedConnection {
  /** The failure if the request fails now. */
  step: GuardFailureKind = "connect";
  /** Time of opening, on the clock of `performance`. */
  openedAt = 0;
  readonly #url: URL;
  readonly #options: ConnectionOptions;
  #socket: ReturnType<typeof connectTls> | undefined;

  constructor(url: URL, options: ConnectionOptions) {
    this.#url = url;
    this.#options = options;
  }

  /**
   * Connects to one of the checked addresses, both families in turn (RFC 8305), as Node.js does by
   * default.
   */
  readonly open: buildConnector.connector = (_target, done) => {
    const { addresses, isListed, secureContext, times } = this.#options;
    const { hostname, port } = this.#url;
    const literal = literalAddress(hostname);
    const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    const lookup: LookupFunction = (_hostname, { all }, answer) => {
      if (all) answer(null, found);
      else answer(null, found[0]?.address ?? "", found[0]?.family);
    };
    const begun = performance.now();
    const socket = connectTls({
      host: literal ?? hostname,
      port: Number(port || 443),
      lookup,
      // TLS server names are host names; a literal address sends none.
      servername: literal === undefined ? hostname : "",
      secureContext,
      ALPNProtocols: ["http/1.1"],
    });
    this.#socket = socket;
    // undici handles errors of an open connection.
    socket.on("error", (error) => {
      if (this.step !== "reset") done(error, null);
    });
    socket.once("connect", () => {
      times.connectMs = performance.now() - begun;
      this.step = "tls";
      const peer = canonicalAddress(socket.remoteAddress ?? "::");
      if (!addresses.includes(peer)) {
        socket.destroy(new GuardFailure("blocked_address", "arrived elsewhere"));
      } else if (!isListed) {
        times.addressClass = peer.includes(":") ? "public_ipv6" : "public_ipv4";
      }
    });
    socket.once("secureConnect", () => {
      this.openedAt = performance.now();
      times.tlsMs = this.openedAt - begun - times.connectMs;
      this.step = "reset";
      done(null, socket);
    });
  };

  /** Ends the connection, even if it is not open yet. */
  close(): void {
    this.#socket?.destroy();
  }
}

/**
 * Reads the body up to its end or its limits.
 *
 * @throws GuardFailure if it must be complete and is not
 */
async function readBody(reply: Readable, request: GuardedRequest): Promise<void> {
  const { bodyMs = bodyMsDefault, bodyBytesMax = bodyBytesDefault, sink } = request;
  using limit = limitTime(bodyMs, request.signal ? [request.signal] : []);
  const { signal } = limit;
  const stop = (): void => void reply.destroy();
  signal.addEventListener("abort", stop);
  let bytesLeft = bodyBytesMax;
  try {
    for await (const bytes of reply as AsyncIterable<Buffer>) {
      if (bytes.length > bytesLeft) {
        if (bytesLeft > 0) await sink?.(bytes.subarray(0, bytesLeft));
        throw new GuardFailure("too_large", `the body is longer than ${bodyBytesMax} bytes`);
      }
      bytesLeft -= bytes.length;
      await sink?.(bytes);
    }
  } catch (error) {
    const failure = GuardFailure.of(error, "reset", signal);
    if (request.whenCut !== "cut" || failure.kind === "aborted") throw failure;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
