/**
 * Budgets and a minimum rate for request bodies that have begun and are not complete (R-AUTH-7). Every edge reads bodies
 * through it, so that no client can take memory or connections by uploads that never end.
 */
import type { IncomingMessage } from "node:http";
import { type Placed, ShortLivedSet } from "../../core/short-lived.ts";
import {
  anonymousMessageBytesMax,
  bodyBytesPerSecondMin,
  bodyGraceMs,
  discardedBodyBytesMax,
  discardedBodyLingerMs,
  unfinishedBodyBytesMax,
} from "../../core/limits.ts";
import type { Caller } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/** What a piece takes beside its bytes where it is kept in a list of pieces, in bytes: a `Buffer` and its place. */
const pieceBytes = 100;

/** How often the rates are checked, in milliseconds. */
const rateCheckMs = 1_000;

/** Whose bytes a body counts as, and who is told that it is refused. */
interface BodyOptions {
  /** Default: a vendor that calls back. */
  readonly caller?: Caller | undefined;
  /** The connection, where it carries several requests at once. Default: it carries one. */
  readonly connection?: object | undefined;
  /** The bytes received so far. Default: those that were kept and dropped. */
  readonly received?: () => number;
  /** Called once where the body is slower than the minimum rate, or another account needs its memory. The bytes are no
   * longer counted in the second case: they must be dropped at once. */
  readonly onRefused: (error: GatewayError) => void;
}

/** The unfinished bodies of a process. */
export class UnfinishedBodies {
  #bytes = 0;
  /** Bytes by the id of their owner. */
  readonly #owned = new Map<object | string, number>();
  readonly #open = new ShortLivedSet<UnfinishedBody>();
  readonly #onRefused: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** @param onRefused told of each body that exceeded a budget. Default: nobody */
  constructor(onRefused: () => void = () => {}) {
    this.#onRefused = onRefused;
  }

  /** The bytes of all unfinished bodies. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Begins to watch a body. Call {@link UnfinishedBody.close} at its end, however it ends. */
  open(options: BodyOptions): UnfinishedBody {
    const body = new UnfinishedBody(this, options);
    this.#open.add(body);
    this.#timer ??= setInterval(this.#checkRates, rateCheckMs).unref();
    return body;
  }

  /**
   * Watches the rest of a request over HTTP/1.1 that was answered before its body ended. Node.js reads all of it, for as long
   * as it takes; this ends the connection if the rest is too slow, or longer than
   * {@link discardedBodyBytesMax}. Has no effect if there is no rest.
   */
  watchRest(request: IncomingMessage): void {
    if (request.complete || request.destroyed) return;
    const { socket } = request;
    let received = 0;
    const rest = this.open({ received: () => received, onRefused: () => socket.destroy() });
    const onData = (piece: Buffer): void => {
      received += piece.length;
      if (received <= discardedBodyBytesMax) return;
      request.off("data", onData);
      request.pause();
      setTimeout(() => socket.destroy(), discardedBodyLingerMs).unref();
    };
    request.on("data", onData);
    request.once("close", () => rest.close());
  }

  /**
   * Counts bytes of a body. Where the process has no room, the largest body of the account that holds most is ended, if that
   * account holds more than this one: nobody is refused because others hold more.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE over a budget
   */
  take(bytes: number, owners: Owners): void {
    try {
      for (const owner of owners) this.#checkOwner(bytes, owner);
      while (this.#bytes + bytes > unfinishedBodyBytesMax.process) this.#makeRoom(bytes, owners);
    } catch (error) {
      this.#onRefused();
      throw error;
    }
    this.#bytes += bytes;
    for (const owner of owners) this.#change(owner, bytes);
  }

  /** Gives counted bytes back, and ends the watch. */
  release(body: UnfinishedBody, bytes: number, owners: Owners | undefined): void {
    this.#open.delete(body);
    if (owners === undefined) return;
    this.#bytes -= bytes;
    for (const owner of owners) this.#change(owner, -bytes);
  }

  #checkOwner(bytes: number, { id, name, bytesMax }: Owner): void {
    if ((this.#owned.get(id) ?? 0) + bytes <= bytesMax) return;
    throw tooMany(ErrorCode.RATE_LIMIT_EXCEEDED, name, bytesMax);
  }

  #makeRoom(bytes: number, [account]: Owners): void {
    let mostBytes = (this.#owned.get(account.id) ?? 0) + bytes;
    let largest: UnfinishedBody | undefined;
    for (const body of this.#open.list()) {
      const id = body.accountId;
      const ownedBytes = id === undefined ? 0 : (this.#owned.get(id) ?? 0);
      const isLarger =
        ownedBytes === mostBytes && body.takenBytes > (largest?.takenBytes ?? Infinity);
      if (ownedBytes <= mostBytes && !isLarger) continue;
      mostBytes = ownedBytes;
      largest = body;
    }
    const refusal = tooMany(
      ErrorCode.SERVICE_UNAVAILABLE,
      "the gateway",
      unfinishedBodyBytesMax.process,
    );
    if (largest === undefined) throw refusal;
    this.#onRefused();
    largest.refuse(refusal);
  }

  #change({ id }: Owner, bytes: number): void {
    const owned = (this.#owned.get(id) ?? 0) + bytes;
    if (owned === 0) this.#owned.delete(id);
    else this.#owned.set(id, owned);
  }

  readonly #checkRates = (): void => {
    const nowMs = performance.now();
    for (const body of this.#open.list()) body.checkRate(nowMs);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}

/** One whose budget a body uses. */
interface Owner {
  /** Connections are known by themselves, others by a name that nobody else has. */
  readonly id: object | string;
  /** As messages name it. */
  readonly name: string;
  readonly bytesMax: number;
}

/** All of them; first the account, or what stands for one. */
type Owners = readonly [Owner, ...Owner[]];

/** A body that is being received. */
export class UnfinishedBody implements Placed {
  place = -1;
  readonly #bodies: UnfinishedBodies;
  readonly #options: BodyOptions;
  readonly #startedMs = performance.now();
  #received = 0;
  /** The part of {@link #received} that uses budgets. */
  #taken = 0;
  #owners: Owners | undefined;
  #isRefused = false;

  constructor(bodies: UnfinishedBodies, options: BodyOptions) {
    this.#bodies = bodies;
    this.#options = options;
  }

  /**
   * Counts received bytes that stay in memory.
   *
   * @param pieces how many pieces they are kept in: a body of pieces of one byte takes 100 times its length. Default: none
   * is kept apart
   * @throws GatewayError over a budget, or where the body is longer than its caller may send: {@link checkBodySize}
   */
  keep(bytes: number, pieces = 0): void {
    // Who was told may have a piece at hand.
    if (this.place < 0) return;
    this.#received += bytes;
    checkBodySize(this.#received, this.#options.caller);
    this.#owners ??= ownersOf(this.#options);
    const taken = bytes + pieces * pieceBytes;
    this.#bodies.take(taken, this.#owners);
    this.#taken += taken;
  }

  /** Counts received bytes that are dropped: they matter for the rate only. */
  drop(bytes: number): void {
    this.#received += bytes;
  }

  /** Ends the watch; the bytes are no longer counted. */
  close(): void {
    this.#bodies.release(this, this.#taken, this.#owners);
    this.#taken = 0;
    this.#owners = undefined;
  }

  /** Refuses a body that is slower than the minimum rate, once. */
  checkRate(nowMs: number): void {
    const overMs = nowMs - this.#startedMs - bodyGraceMs;
    const received = this.#options.received?.() ?? this.#received;
    if (this.#isRefused || overMs * bodyBytesPerSecondMin <= received * 1_000) return;
    this.#isRefused = true;
    this.#options.onRefused(tooSlow());
  }

  /** Refuses a body whose memory another account needs. */
  refuse(error: GatewayError): void {
    this.close();
    this.#isRefused = true;
    this.#options.onRefused(error);
  }

  /** The bytes that use budgets. */
  get takenBytes(): number {
    return this.#taken;
  }

  /** Whose share of the process it uses; `undefined` while it uses none. */
  get accountId(): object | string | undefined {
    return this.#owners?.[0].id;
  }
}

/**
 * Checks how much a caller sends in one body or message: whoever is not identified gets little memory, on whatever edge.
 *
 * @param bytes those received so far, or those announced
 * @throws GatewayError REQUEST_TOO_LARGE for an anonymous caller with more than {@link anonymousMessageBytesMax}
 */
export function checkBodySize(bytes: number, caller: Caller | undefined): void {
  if (caller?.kind !== "anonymous" || bytes <= anonymousMessageBytesMax) return;
  throw new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `Without a key or a session a message has at most ${anonymousMessageBytesMax} bytes`,
  );
}

function ownersOf({ caller, connection }: BodyOptions): Owners {
  const others: Owner[] = [];
  const { key, connection: connectionMax } = unfinishedBodyBytesMax;
  if (caller?.kind === "key") {
    others.push({ id: `key ${caller.keyId}`, name: "this API key", bytesMax: key });
  }
  if (connection !== undefined) {
    others.push({ id: connection, name: "this connection", bytesMax: connectionMax });
  }
  return [accountOf(caller), ...others];
}

/** Whose share of the process a body uses. Callers without an account have one together, by their kind. */
function accountOf(caller: Caller | undefined): Owner {
  const { account: bytesMax, anonymous } = unfinishedBodyBytesMax;
  switch (caller?.kind) {
    case "key":
    case "session":
      return { id: `account ${caller.accountId}`, name: "this account", bytesMax };
    case "operator":
      return { id: "operator", name: "the operator", bytesMax };
    case "anonymous":
      return { id: "anonymous", name: "callers without a key or session", bytesMax: anonymous };
    case undefined:
    default:
      return { id: "vendors", name: "vendors", bytesMax };
  }
}

function tooMany(
  code: typeof ErrorCode.RATE_LIMIT_EXCEEDED | typeof ErrorCode.SERVICE_UNAVAILABLE,
  owner: string,
  bytesMax: number,
): GatewayError {
  const mib = bytesMax / (1_024 * 1_024);
  return new GatewayError(
    code,
    `Too many uploads at once: unfinished request bodies may take ${mib} MiB for ${owner}; complete them, and retry after the time in the retry-after header`,
  );
}

function tooSlow(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The body arrived too slowly: send at least ${bodyBytesPerSecondMin} bytes per second`,
    { status: 408 },
  );
}
