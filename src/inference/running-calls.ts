import { gatewayBusy, gatewayStopping } from "../core/caller.ts";

/**
 * Counts the calls that run: a stopping gateway lets them finish, and an overloaded one refuses more at once rather than
 * have all of them wait for seconds.
 */
export class RunningCalls {
  #count = 0;
  readonly #max: number;
  readonly #onRefused: () => void;
  #isOpen = true;
  readonly #onIdle = new Set<() => void>();

  /**
   * @param max how many may run at once. Default: no limit
   * @param onRefused told of each call that was refused because of it. Default: nobody
   */
  constructor(max = Number.POSITIVE_INFINITY, onRefused: () => void = () => {}) {
    this.#max = max;
    this.#onRefused = onRefused;
  }

  /** How many run. */
  get count(): number {
    return this.#count;
  }

  /** Whether new calls may begin. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Refuses calls where as many run as may. @throws GatewayError SERVICE_UNAVAILABLE */
  requireCapacity(): void {
    if (this.#count < this.#max) return;
    this.#onRefused();
    throw gatewayBusy(this.#max);
  }

  /** A call begins. @throws GatewayError SERVICE_UNAVAILABLE once closed, and where as many run as may */
  enter(): void {
    if (!this.#isOpen) throw gatewayStopping();
    this.requireCapacity();
    this.#count++;
  }

  /** A call has ended, settlement included. */
  leave(): void {
    this.#count--;
    if (this.#count > 0) return;
    for (const idle of this.#onIdle) idle();
  }

  /** Lets no new calls begin. Resolves when the running ones have ended, at the latest after
   * `timeoutMs`. */
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
