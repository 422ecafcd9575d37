/** Lets one reader wait until it is woken. */

/**
 * Wakes one sleeping reader. A wake-up while no reader sleeps is lost: the reader checks its state
 * before it sleeps.
 */
export class WakeSignal {
  #end: (() => void) | undefined;

  /** Ends the sleep, if there is one. */
  wake(): void {
    this.#end?.();
  }

  /**
   * Resolves at the next {@link wake}, after `ms` milliseconds, or when `signal` is aborted. Leaves
   * no listener.
   */
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#end = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end);
      this.#end = end;
    });
  }
}
