/** Limits repeated requests to a vendor, so that retries cannot multiply the load on one that is failing. */

/** Retries for each call: a fifth. */
const share = 0.2;

/** Retries that a vendor with few calls has in any case, and the most that a quiet time saves up beside them. */
const reserve = 10;
const savedMax = 100;

/** The retries that a vendor may get: 20 % of its calls, and {@link reserve}. */
export class RetryBudget {
  #left = reserve;

  /** Counts a call that this vendor gets for the first time. */
  onCall(): void {
    if (this.#left < savedMax) this.#left += share;
  }

  /** Takes one retry. Returns whether there was one. */
  take(): boolean {
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
