/** Limits how long a vendor may send no content. */
import type { ModelConfig, VendorConfig } from "../../config/config.ts";
import { firstContentMs as firstContentDefaultMs } from "../../core/limits.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { DisconnectHandler } from "./disconnect.ts";

/** Ends an attempt whose vendor sends no content in time. Keep-alives do not restart it. */
export class Silence {
  readonly #client: DisconnectHandler;
  #timer: NodeJS.Timeout | undefined;

  constructor(client: DisconnectHandler) {
    this.#client = client;
  }

  start(afterMs: number): void {
    this.stop();
    this.#timer = setTimeout(endSilent, afterMs, this.#client);
  }

  /** An event has come that is no keep-alive. */
  restart(): void {
    this.#timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function endSilent(client: DisconnectHandler): void {
  // A detached reply waits only for the usage.
  if (client.isDetached) return;
  client.stopAttempt(new HttpFailure("timeout", "no content within timeouts.first_byte"));
}

/** Returns the maximum silence of a stream before its first content. */
export function firstContentMs({ isReasoning }: ModelConfig, { timeouts }: VendorConfig): number {
  return timeouts.firstContentMs ?? (isReasoning ? timeouts.firstByteMs : firstContentDefaultMs);
}
