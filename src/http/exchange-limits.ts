/** Ends exchanges that take too long in total, or whose vendor sends no content for too long. */
import { type Placed, ShortLivedSet } from "../core/short-lived.ts";
import { HttpFailure } from "./failure.ts";

/** Time limits of a client. */
interface WatchLimits {
  readonly idleMs: number;
  /** Undefined if there is no limit. */
  readonly totalMs?: number | undefined;
}

/** An exchange that is watched. */
export interface WatchedExchange extends Placed {
  readonly silence: Silence;
  /** Whether its reader, not its vendor, is waited for. */
  readonly isPaused: boolean;
  /** Ends it. */
  expire(failure: HttpFailure): void;
}

/**
 * The running exchanges of a client. One timer serves all: one for each would cost more than the
 * exchange.
 */
export class ExchangeWatch {
  readonly #idleMs: number;
  readonly #totalMs: number;
  readonly #running = new ShortLivedSet<WatchedExchange>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ idleMs, totalMs = Number.POSITIVE_INFINITY }: WatchLimits) {
    this.#idleMs = idleMs;
    this.#totalMs = totalMs;
  }

  add(exchange: WatchedExchange): void {
    this.#running.add(exchange);
    const checkMs = Math.min(1_000, Math.max(20, Math.min(this.#idleMs, this.#totalMs) / 4));
    this.#timer ??= setInterval(this.#check, checkMs).unref();
  }

  delete(exchange: WatchedExchange): void {
    this.#running.delete(exchange);
  }

  readonly #check = (): void => {
    const nowMs = performance.now();
    for (const exchange of this.#running.list()) {
      const { silence } = exchange;
      if (nowMs - silence.startedMs > this.#totalMs) {
        exchange.expire(new HttpFailure("timeout", "the total time limit was reached"));
      } else if (silence.lastsMs(nowMs, exchange.isPaused) > this.#idleMs) {
        exchange.expire(
          new HttpFailure("timeout", "the reply had only white space or comments for too long"),
        );
      }
    }
    if (this.#running.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}

/**
 * Measures the time in which a reply had no content; white space and comments of event streams are
 * not content. The HTTP library handles a vendor that sends nothing at all.
 */
export class Silence {
  readonly startedMs = performance.now();
  #sinceMs = Number.POSITIVE_INFINITY;
  /** Whether content arrived since the last check. Then further bytes are not scanned. */
  #isBroken = false;
  #areComments = false;
  #isInComment = false;
  #isLineStart = true;

  /** Called when the head of the reply arrives. */
  begin(contentType: string | undefined): void {
    this.#areComments = contentType?.startsWith("text/event-stream") ?? false;
    this.#sinceMs = performance.now();
  }

  /** Called when bytes of the reply arrive. */
  hear(bytes: Buffer): void {
    if (this.#isBroken) return;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === 0x0a || byte === 0x0d) {
        this.#isLineStart = true;
        this.#isInComment = false;
      } else if (!this.#isInComment && byte !== 0x20 && byte !== 0x09) {
        this.#isInComment = this.#areComments && this.#isLineStart && byte === 0x3a;
        if (!this.#isInComment) return this.#break(bytes);
      }
    }
  }

  /** Duration of the silence in milliseconds; negative infinity before the head. */
  lastsMs(nowMs: number, isPaused: boolean): number {
    if (this.#isBroken || (isPaused && this.#sinceMs !== Number.POSITIVE_INFINITY)) {
      this.#sinceMs = nowMs;
      this.#isBroken = false;
    }
    return nowMs - this.#sinceMs;
  }

  #break(bytes: Buffer): void {
    this.#isBroken = true;
    const last = bytes.at(-1);
    this.#isLineStart = last === 0x0a || last === 0x0d;
  }
}
