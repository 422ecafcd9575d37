/** Replies that are read on after their clients have left: bounded in time and in number. */
import { drainRepliesMax, drainReplyMs } from "../config/limits.ts";

/** The replies of a process that are read on. */
export class Drains {
  /** How each of them is stopped. */
  readonly #running = new Map<AbortController, NodeJS.Timeout>();
  #isOpen = true;

  /** How many run. */
  get count(): number {
    return this.#running.size;
  }

  /** Begins one: `vendor` is aborted when its time is up. False: there are too many, or the gateway stops. */
  begin(vendor: AbortController): boolean {
    if (!this.#isOpen || this.#running.size >= drainRepliesMax) return false;
    const timer = setTimeout(() => vendor.abort(), drainReplyMs).unref();
    this.#running.set(vendor, timer);
    return true;
  }

  /** One has ended, or never began. */
  end(vendor: AbortController): void {
    clearTimeout(this.#running.get(vendor));
    this.#running.delete(vendor);
  }

  /** Stops all of them, and lets none begin. */
  stop(): void {
    this.#isOpen = false;
    for (const vendor of this.#running.keys()) vendor.abort();
  }
}
