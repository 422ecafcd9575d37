/** The holds that callers wait for, and how long they may. */
import type { HoldItem } from "./lane-items.ts";
import { unavailable } from "./unavailable.ts";

/** How often is looked for holds that waited too long, in milliseconds: with `holdWaitMs` under 1 s. */
const deadlineLookMs = 50;

/** Answers holds with 503 that the database does not answer in time. */
export class WaitingHolds {
  readonly #onAbandoned: (accountIds: ReadonlySet<string>) => void;
  /** In the order of their deadlines; answered ones leave with the next look. */
  #items: HoldItem[] = [];
  #timer: NodeJS.Timeout | undefined;
  #abandoned = 0;

  /** `onAbandoned`: told the accounts of holds that nobody waits for any more. */
  constructor(onAbandoned: (accountIds: ReadonlySet<string>) => void) {
    this.#onAbandoned = onAbandoned;
  }

  /** How many callers wait. */
  get size(): number {
    return this.#items.filter(isPending).length;
  }

  /** How many were answered with 503, in all. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** A hold was asked for; its deadline is later than those of all before. */
  add(item: HoldItem): void {
    this.#items.push(item);
    this.#timer ??= setInterval(() => this.#look(), deadlineLookMs);
  }

  /** Nobody needs to wait any more: the ledger closes. */
  close(): void {
    for (const item of this.#items) this.#abandon(item);
    this.#look();
  }

  /** One look for all holds: a timer for each would cost more than the rest of a hold. */
  #look(): void {
    const now = performance.now();
    const first = this.#items.findIndex((item) => isPending(item) && item.deadlineMs > now);
    const passed = this.#items.splice(0, first < 0 ? this.#items.length : first);
    const abandoned = passed.filter((item) => this.#abandon(item));
    if (abandoned.length > 0) this.#onAbandoned(new Set(abandoned.map((item) => item.accountId)));
    if (this.#items.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Tells the caller of a hold that it takes too long. Returns whether somebody had waited. */
  #abandon(item: HoldItem): boolean {
    if (!isPending(item)) return false;
    item.state = "abandoned";
    this.#abandoned++;
    item.reject(unavailable("the balance cannot be checked right now"));
    return true;
  }
}

function isPending(item: HoldItem): boolean {
  return item.state === "waiting" || item.state === "sent";
}
