/**
 * HTTP client for addresses that customers name: webhooks, result files, images. The SSRF guard opens one
 * connection per request. There are no redirects, proxies, cookies or compression; one deadline covers everything
 * up to the reply's head, another the body, and the body's length is limited.
 *
 * It uses Node's own HTTP parser on an open socket, without a pool: any library that resolves names or connects by
 * itself could reach an address that was not checked.
 */
import { lookup, Resolver } from "node:dns/promises";
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { connect as connectTcp, type LookupFunction, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import {
  connect as connectTls,
  createSecureContext,
  type SecureContext,
  type TLSSocket,
} from "node:tls";
import { headerBytesMax } from "../core/limits.ts";
import { limitTime } from "../core/async.ts";
import { GuardFailure } from "./guard-failure.ts";
import { canonicalAddress, isPublicAddress } from "./public-address.ts";
import { literalAddress, readPublicUrl } from "./public-url.ts";

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
  using limit = limitTime(request.headMs ?? headMsDefault, request.signal ? [request.signal] : []);
  const { signal } = limit;
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
  using limit = limitTime(bodyMs, request.signal ? [request.signal] : []);
  const { signal } = limit;
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

// Opens TLS connections to addresses that customers name. All addresses of the name are checked before one is
// connected to, and the connected socket is checked again. The name is resolved only once, so that a second,
// different DNS answer (DNS rebinding) has no effect.

/** Class of the address reached, which does not reveal it. `listed`: a host that the operator exempted. */
type AddressClass = "none" | "public_ipv4" | "public_ipv6" | "listed" | "blocked";

/** Durations of the steps in milliseconds; 0 for steps that were not reached. */
interface ConnectionTimes {
  dnsMs: number;
  connectMs: number;
  tlsMs: number;
  addressClass: AddressClass;
}

/** Addresses that may be reached. */
export interface GuardOptions {
  /** Exact hosts, in lower case, that may have any address. Default: none. */
  readonly allowHosts?: readonly string[];
  /** Trusted certificates, in PEM. Default: those of Node.js. */
  readonly ca?: readonly string[];
  /** Resolves names that are not listed. Default: DNS. */
  readonly resolve?: Resolve;
  /** Addresses of this machine, which are always blocked. Default: those of its network interfaces. */
  readonly ownAddresses?: () => readonly string[];
}

/** The options with the parsed certificates, which are shared by all connections: parsing takes milliseconds. */
interface OpenOptions extends GuardOptions {
  readonly secureContext: SecureContext;
}

/**
 * Connects to the host of a URL that `readPublicUrl` accepted. Updates `times` as it proceeds, so that failures
 * have durations too.
 *
 * @throws GuardFailure
 */
async function openGuarded(
  url: URL,
  { options, signal, times }: { options: OpenOptions; signal: AbortSignal; times: ConnectionTimes },
): Promise<TLSSocket> {
  const hostname = url.hostname;
  const isListed = options.allowHosts?.includes(hostname) ?? false;
  let begun = performance.now();
  const addresses = await findAddresses(hostname, isListed, { options, signal });
  times.dnsMs = performance.now() - begun;
  times.addressClass = isListed ? "listed" : classifyAddresses(addresses, options);
  if (times.addressClass === "blocked")
    throw new GuardFailure("blocked_address", "not a public address");
  begun = performance.now();
  const port = Number(url.port || 443);
  const socket = await dial({ hostname, port, addresses, signal });
  times.connectMs = performance.now() - begun;
  try {
    const peer = canonicalAddress(socket.remoteAddress ?? "::");
    if (!addresses.includes(peer)) throw new GuardFailure("blocked_address", "arrived elsewhere");
    if (!isListed) times.addressClass = peer.includes(":") ? "public_ipv6" : "public_ipv4";
    begun = performance.now();
    const secure = await secureSocket(socket, hostname, {
      secureContext: options.secureContext,
      signal,
    });
    times.tlsMs = performance.now() - begun;
    return secure;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/**
 * All addresses of a host, in canonical spelling. A literal address needs no resolver, but passes the same checks.
 */
async function findAddresses(
  hostname: string,
  isListed: boolean,
  { options, signal }: { options: GuardOptions; signal: AbortSignal },
): Promise<string[]> {
  const literal = literalAddress(hostname);
  if (literal !== undefined) return [canonicalAddress(literal)];
  const resolve = isListed ? resolveListed : (options.resolve ?? resolvePublic);
  try {
    const found = await unless(signal, resolve(hostname, signal));
    if (found.length > 0) return [...new Set(found.map(canonicalAddress))];
  } catch (error) {
    throw GuardFailure.of(error, "dns", signal);
  }
  throw new GuardFailure("dns", "the name has no address");
}

/**
 * Classifies addresses. A single non-public address blocks the whole name: a mixture is an attempt to slip through.
 */
function classifyAddresses(addresses: readonly string[], options: GuardOptions): AddressClass {
  const own = new Set((options.ownAddresses ?? machineAddresses)());
  const isOpen = addresses.every((address) => isPublicAddress(address) && !own.has(address));
  return isOpen ? "none" : "blocked";
}

function machineAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .map(({ address }) => canonicalAddress(address.split("%")[0] ?? address));
}

interface Dial {
  readonly hostname: string;
  readonly port: number;
  readonly addresses: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Connects to one of the checked addresses, both families in parallel as RFC 8305 describes. Names are never
 * resolved again.
 */
function dial({ hostname, port, addresses, signal }: Dial): Promise<Socket> {
  const judged = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  const lookupJudged: LookupFunction = (_hostname, { all }, done) => {
    if (all) done(null, judged);
    else done(null, judged[0]?.address ?? "", judged[0]?.family);
  };
  const host = literalAddress(hostname) ?? hostname;
  const socket = connectTcp({ host, port, lookup: lookupJudged, autoSelectFamily: true });
  return ready(socket, "connect", { kind: "connect", signal });
}

function secureSocket(
  socket: Socket,
  hostname: string,
  { secureContext, signal }: { secureContext: SecureContext; signal: AbortSignal },
): Promise<TLSSocket> {
  const secure = connectTls({
    socket,
    // TLS server names are host names; a literal address sends none.
    ...(literalAddress(hostname) === undefined
      ? { servername: hostname }
      : { host: literalAddress(hostname) }),
    secureContext,
    ALPNProtocols: ["http/1.1"],
  });
  return ready(secure, "secureConnect", { kind: "tls", signal });
}

/** Waits for a socket event; destroys the socket on failure or cancellation. */
function ready<Opened extends Socket>(
  socket: Opened,
  event: "connect" | "secureConnect",
  { kind, signal }: { kind: "connect" | "tls"; signal: AbortSignal },
): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const end = (error: unknown): void => {
      signal.removeEventListener("abort", abort);
      socket.removeAllListeners();
      // Errors after the cancellation are of no interest.
      socket.on("error", () => {});
      socket.destroy();
      reject(GuardFailure.of(error, kind, signal));
    };
    const abort = (): void => end(signal.reason);
    socket.once("error", end);
    socket.once("close", () => end(new Error("closed by the other side")));
    socket.once(event, () => {
      signal.removeEventListener("abort", abort);
      socket.removeAllListeners("error").removeAllListeners("close");
      resolve(socket);
    });
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
  });
}

/** Resolves with the work, unless the signal is aborted first. */
function unless<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Resolves all addresses of a name, both families. Rejects, or resolves to an empty list, where there are none. */
type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Deadline for all DNS queries, in milliseconds. */
const answerMs = 1_500;

/** DNS errors that mean "no address of this family". */
const emptyAnswers = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * Queries A and AAAA records in parallel. Not `getaddrinfo`: it runs on the few threads shared with files and
 * cryptography, so names with unresponsive servers could block the process, and it would use search domains and the
 * hosts file.
 */
async function resolvePublic(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: answerMs, tries: 1 });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener("abort", cancel);
  const timer = setTimeout(cancel, answerMs);
  try {
    const answers = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ]);
    const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (found.length > 0) return found;
    for (const answer of answers) {
      if (answer.status === "rejected" && !isEmpty(answer.reason)) throw answer.reason;
    }
    return [];
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  }
}

/** Resolves as the operating system does, hosts file included: for the hosts that the operator listed. */
async function resolveListed(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

function isEmpty(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && emptyAnswers.has(code);
}
