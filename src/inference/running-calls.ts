import { ErrorCode, GatewayError } from "../errors.ts";

/** Counts the calls that run, so that a stopping gateway can let them finish. */
export class RunningCalls {
  #count = 0;
  #isOpen = true;
  #onIdle: (() => void) | undefined;

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
    if (!this.#isOpen) throw stopping();
    this.#count++;
  }

  /** A call has ended, settlement included. */
  leave(): void {
    this.#count--;
    if (this.#count === 0) this.#onIdle?.();
  }

  /** Lets no new calls begin. Resolves when the running ones have ended, at the latest after
   * `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    this.#isOpen = false;
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** What is said to calls that come while the gateway stops. */
export function stopping(): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "The gateway is stopping and takes no new calls; retry after the time in the retry-after header",
  );
}
