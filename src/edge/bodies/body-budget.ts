/**
 * Counts the bytes of incomplete request bodies (R-AUTH-7): one budget for each key, one for the
 * process. Every edge reads bodies through it, so that uploads that never end cannot fill the
 * memory. Node's `requestTimeout` ends them.
 */
import type { Caller } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { anonymousMessageBytesMax, unfinishedBodyBytesMax } from "../../core/limits.ts";

/** Memory of a piece in addition to its bytes: a `Buffer` and its entry in a list. */
const pieceBytes = 100;

/** The unfinished bodies of a process. */
export class BodyBudget {
  #bytes = 0;
  /** Bytes by the name of their owner. */
  readonly #owned = new Map<string, number>();
  readonly #onRefused: () => void;

  /** @param onRefused called for each body that exceeds a budget. Does nothing by default */
  constructor(onRefused: () => void = () => {}) {
    this.#onRefused = onRefused;
  }

  /** The bytes of all unfinished bodies. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Begins to count a body. Call {@link ArrivingBody.close} at its end, however it ends.
   *
   * @param caller `undefined` for a vendor that calls back
   */
  open(caller: Caller | undefined): ArrivingBody {
    return new ArrivingBody(this, caller);
  }

  /**
   * Counts bytes of an owner. @throws GatewayError RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE over
   * a budget
   */
  take(bytes: number, owner: string): void {
    const owned = (this.#owned.get(owner) ?? 0) + bytes;
    const { owner: ownerMax, process: processMax } = unfinishedBodyBytesMax;
    const isOwnerFull = owned > ownerMax;
    if (isOwnerFull || this.#bytes + bytes > processMax) {
      this.#onRefused();
      throw isOwnerFull
        ? tooMany(
            ErrorCode.RATE_LIMIT_EXCEEDED,
            owner.startsWith("key") ? "this API key" : "this caller",
            ownerMax,
          )
        : tooMany(ErrorCode.SERVICE_UNAVAILABLE, "the gateway", processMax);
    }
    this.#bytes += bytes;
    this.#owned.set(owner, owned);
  }

  /** Returns counted bytes to the budget. */
  release(bytes: number, owner: string): void {
    const owned = (this.#owned.get(owner) ?? 0) - bytes;
    if (owned > 0) this.#owned.set(owner, owned);
    else this.#owned.delete(owner);
    this.#bytes -= bytes;
  }
}

/** A body that is being received. */
export class ArrivingBody {
  readonly #budget: BodyBudget;
  readonly #caller: Caller | undefined;
  #received = 0;
  #taken = 0;

  constructor(budget: BodyBudget, caller: Caller | undefined) {
    this.#budget = budget;
    this.#caller = caller;
  }

  /**
   * Counts a received piece that stays in memory.
   *
   * @throws GatewayError over a budget, or if the body is longer than its caller may send: {@link
   * checkBodySize}
   */
  keep(bytes: number): void {
    this.#received += bytes;
    checkBodySize(this.#received, this.#caller);
    const taken = bytes + pieceBytes;
    this.#budget.take(taken, ownerOf(this.#caller));
    this.#taken += taken;
  }

  /**
   * Returns all bytes to the budget: the body is complete or discarded. Further pieces count as
   * another body.
   */
  close(): void {
    if (this.#taken > 0) this.#budget.release(this.#taken, ownerOf(this.#caller));
    this.#taken = this.#received = 0;
  }
}

/**
 * Checks the size of one body or message: callers that are not identified get little memory, on any
 * edge.
 *
 * @param bytes received so far, or announced
 * @throws GatewayError REQUEST_TOO_LARGE for an anonymous caller with more than {@link
 * anonymousMessageBytesMax}
 */
export function checkBodySize(bytes: number, caller: Caller | undefined): void {
  if (caller?.kind !== "anonymous" || bytes <= anonymousMessageBytesMax) return;
  throw new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `A message without a key or a session may have at most ${anonymousMessageBytesMax} bytes: send a key, or a shorter message`,
  );
}

/**
 * The owner of the budget that a body uses; the first word is the kind. Callers without a key or
 * account share one, by their kind.
 */
function ownerOf(caller: Caller | undefined): string {
  if (caller === undefined) return "vendors";
  if (caller.kind === "key") return `key ${caller.keyId}`;
  return caller.kind === "session" ? `account ${caller.accountId}` : caller.kind;
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
