import { gatewayBusy, gatewayStopping } from "../core/caller.ts";

/**
 * Counts the running calls. A stopping gateway lets them finish. An overloaded gateway refuses further calls at once,
 * because otherwise all calls would wait for seconds.
 */
export class RunningCalls {
  #count = 0;
  readonly #max: number;
  readonly #onRefused: () => void;
  #isOpen = true;
  readonly #onIdle = new Set<() => void>();

  /**
   * @param max the limit of concurrent calls. Default: no limit
   * @param onRefused told of each call that was refused because of it. Default: nobody
   */
  constructor(max = Number.POSITIVE_INFINITY, onRefused: () => void = () => {}) {
    this.#max = max;
    this.#onRefused = onRefused;
  }

  /** The number of running calls. */
  get count(): number {
    return this.#count;
  }

  /** Whether new calls are accepted. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Throws at the limit of concurrent calls. @throws GatewayError SERVICE_UNAVAILABLE */
  requireCapacity(): void {
    if (this.#count < this.#max) return;
    this.#onRefused();
    throw gatewayBusy(this.#max);
  }

  /** Counts a new call. @throws GatewayError SERVICE_UNAVAILABLE while draining and at the limit */
  enter(): void {
    if (!this.#isOpen) throw gatewayStopping();
    this.requireCapacity();
    this.#count++;
  }

  /** Removes a call that has ended, settlement included. */
  leave(): void {
    this.#count--;
    if (this.#count > 0) return;
    for (const idle of this.#onIdle) idle();
  }

  /** Refuses new calls. Resolves when the running calls have ended, at the latest after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    this.#isOpen = false;
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#onIdle.delete(finish);
        resolve();
      };
      const timer = setTimeout(finish, timeoutMs);
      this.#onIdle.add(finish);
    });
  }
}
