/** Loads the configuration of a process again while it serves (R-OPS-1). */
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { PriceBook } from "../billing/prices/pricing.ts";
import type { Config } from "../config/config.ts";
import type { LiveConfig } from "../config/live-config.ts";
import { failureMessage } from "../core/error-words.ts";
import type { Metrics } from "../observe/metrics.ts";

/** The outcome of a reload. */
export interface Reloaded {
  readonly source: string;
  readonly hash: string;
  /** Whether anything differs from the configuration before. */
  readonly isChanged: boolean;
  /** The settings that differ from the start and have no effect before a restart, as paths. */
  readonly needsRestart: readonly string[];
}

/** The configuration in force in a process. */
export interface ConfigStatus extends Omit<Reloaded, "isChanged"> {
  /** Milliseconds since 1970. */
  readonly loadMs: number;
  /** Why the last attempt to load another one failed; undefined if it did not. */
  readonly problem: string | undefined;
}

/** Options of {@link ConfigReload}. */
interface ReloadOptions {
  readonly config: LiveConfig;
  /** Reads the configuration that should be in force. @throws if it is faulty */
  readonly read: () => Promise<Config>;
  /** Stores the prices before the first call is charged at them. */
  readonly prices: Pick<PriceBook, "load">;
  readonly metrics: Pick<Metrics, "configInfo" | "gauge">;
  readonly log: Logger;
}

/** Exchanges the configuration of a process, one attempt after the other. */
export class ConfigReload {
  readonly #options: ReloadOptions;
  #last: Promise<unknown> = Promise.resolve();
  #loadMs = Date.now();
  #problem: string | undefined;

  constructor(options: ReloadOptions) {
    this.#options = options;
    this.#show();
    options.metrics.gauge("uas_config_load_time_seconds", () => this.#loadMs / 1000);
    options.metrics.gauge("uas_config_load_failed", () => (this.#problem === undefined ? 0 : 1));
  }

  get status(): ConfigStatus {
    const { config } = this.#options;
    const { source, hash, current } = config;
    const needsRestart = config.needsRestart(current);
    return { source, hash, needsRestart, loadMs: this.#loadMs, problem: this.#problem };
  }

  /**
   * Reads the configuration and puts it into force, after all earlier attempts.
   *
   * @throws the reason why it cannot be used; then the one before stays in force
   */
  reload(): Promise<Reloaded> {
    const attempt = this.#last.then(() => this.#attempt());
    this.#last = attempt.catch(() => {});
    return attempt;
  }

  async #attempt(): Promise<Reloaded> {
    const { read, log } = this.#options;
    try {
      const reloaded = await this.#exchange(await read());
      this.#problem = undefined;
      return reloaded;
    } catch (error) {
      this.#problem = failureMessage(error);
      const reason = this.#problem;
      log.error({ reason }, "the configuration was not loaded; the previous one stays in force");
      throw error;
    }
  }

  async #exchange(next: Config): Promise<Reloaded> {
    const { config, prices, log } = this.#options;
    const { source, hash } = next;
    const isChanged = !isDeepStrictEqual(next, config.current);
    if (!isChanged) return { source, hash, isChanged, needsRestart: config.needsRestart(next) };
    await prices.load(next.models.values());
    const needsRestart = config.exchange(next);
    this.#loadMs = Date.now();
    this.#show();
    log.info({ config: source, hash, needsRestart }, "the configuration was loaded");
    for (const warning of next.warnings) log.warn({ warning }, "the configuration has a warning");
    return { source, hash, isChanged, needsRestart };
  }

  #show(): void {
    const { config, metrics } = this.#options;
    metrics.configInfo.reset();
    metrics.configInfo.set({ source: config.source, hash: config.hash }, 1);
  }
}
