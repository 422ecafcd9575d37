import { gatewayStopping } from "../caller.ts";

/** Counts the calls that run, so that a stopping gateway can let them finish. */
export class RunningCalls {
  #count = 0;
  #isOpen = true;
  readonly #onIdle = new Set<() => void>();

  /** How many run. */
  get count(): number {
    return this.#count;
  }

  /** Whether new calls may begin. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A call begins. @throws GatewayError SERVICE_UNAVAILABLE once closed */
  enter(): void {
    if (!this.#isOpen) throw gatewayStopping();
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
