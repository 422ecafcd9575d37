/**
 * Budgets and a minimum rate for request bodies that have begun and are not complete (R-AUTH-7). Every edge reads bodies
 * through it, so that no client can take memory or connections by uploads that never end.
 */
import type { IncomingMessage } from "node:http";
import { type Placed, ShortLivedSet } from "./short-lived.ts";
import {
  anonymousMessageBytesMax,
  bodyBytesPerSecondMin,
  bodyGraceMs,
  unfinishedBodyBytesMax,
} from "../config/limits.ts";
import type { Caller } from "./caller.ts";
import { ErrorCode, GatewayError } from "./errors.ts";

/** What a piece takes beside its bytes where it is kept in a list of pieces, in bytes: a `Buffer` and its place. */
const pieceBytes = 100;

/** How often the rates are checked, in milliseconds. */
const rateCheckMs = 1_000;

/** Whose bytes a body counts as, and who is told that it is too slow. */
interface BodyOptions {
  /** Default: nobody; the body is then bounded by the budget of the process alone. */
  readonly caller?: Caller | undefined;
  /** The connection, where it carries several requests at once. Default: it carries one. */
  readonly connection?: object | undefined;
  /** The bytes received so far. Default: those that were kept and dropped. */
  readonly received?: () => number;
  /** Called once where the body is slower than the minimum rate. */
  readonly onSlow: (error: GatewayError) => void;
}

/** The unfinished bodies of a process. */
export class UnfinishedBodies {
  #bytes = 0;
  /** Bytes by owner: connections by themselves, keys and accounts by their ids. */
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
   * Watches the rest of a request over HTTP/1.1 that was answered before its body ended. Node passes over that, for as long as
   * it takes; this ends the connection where it is too slow. Harmless where there is no rest.
   */
  watchRest(request: IncomingMessage): void {
    if (request.complete || request.destroyed) return;
    const { socket } = request;
    const before = socket.bytesRead;
    const rest = this.open({
      received: () => socket.bytesRead - before,
      onSlow: () => socket.destroy(),
    });
    request.once("close", () => rest.close());
  }

  /** Counts bytes of a body. @throws GatewayError RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE over a budget */
  take(bytes: number, owners: Owners): void {
    const excess = this.#excess(bytes, owners);
    if (excess !== undefined) {
      this.#onRefused();
      throw excess;
    }
    this.#bytes += bytes;
    for (const owner of Object.values(owners)) this.#change(owner, bytes);
  }

  /** Gives counted bytes back, and ends the watch. */
  release(body: UnfinishedBody, bytes: number, owners: Owners | undefined): void {
    this.#open.delete(body);
    if (owners === undefined) return;
    this.#bytes -= bytes;
    for (const owner of Object.values(owners)) this.#change(owner, -bytes);
  }

  #excess(bytes: number, owners: Owners): GatewayError | undefined {
    for (const scope of ["connection", "key", "account"] as const) {
      const owner = owners[scope];
      const max = unfinishedBodyBytesMax[scope];
      if (owner !== undefined && (this.#owned.get(owner) ?? 0) + bytes > max) {
        return tooMany(ErrorCode.RATE_LIMIT_EXCEEDED, `this ${words[scope]}`, max);
      }
    }
    const max = unfinishedBodyBytesMax.process;
    if (this.#bytes + bytes <= max) return undefined;
    return tooMany(ErrorCode.SERVICE_UNAVAILABLE, "the gateway", max);
  }

  #change(owner: object | string | undefined, bytes: number): void {
    if (owner === undefined) return;
    const owned = (this.#owned.get(owner) ?? 0) + bytes;
    if (owned === 0) this.#owned.delete(owner);
    else this.#owned.set(owner, owned);
  }

  readonly #checkRates = (): void => {
    const nowMs = performance.now();
    for (const body of this.#open.list()) body.checkRate(nowMs);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}

/** Those whose budgets a body uses. */
interface Owners {
  readonly connection: object | undefined;
  readonly key: string | undefined;
  readonly account: string | undefined;
}

const words = { connection: "connection", key: "API key", account: "account" } as const;

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
  #isSlow = false;

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

  /** Reports a body that is slower than the minimum rate, once. */
  checkRate(nowMs: number): void {
    const overMs = nowMs - this.#startedMs - bodyGraceMs;
    const received = this.#options.received?.() ?? this.#received;
    if (this.#isSlow || overMs * bodyBytesPerSecondMin <= received * 1_000) return;
    this.#isSlow = true;
    this.#options.onSlow(tooSlow());
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
  if (caller?.kind !== "key") return { connection, key: undefined, account: undefined };
  const { keyId, accountId } = caller;
  return { connection, key: `key ${keyId}`, account: `account ${accountId}` };
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
