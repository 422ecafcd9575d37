/** Keeps the configuration of a process up to date while it serves (R-OPS-1). */
import { unwatchFile, watchFile } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { PriceBook } from "../billing/prices/pricing.ts";
import type { Config } from "../config/config.ts";
import { hasCommands } from "../config/commands.ts";
import type { LiveConfig } from "../config/live-config.ts";
import { failureMessage } from "../core/error-words.ts";
import type { Database } from "../db/database.ts";
import { Listener } from "../db/pool/listener.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { ConfigStatus, Reloaded } from "../operator/configuration/service.ts";
import { configChannel, storeProcessState } from "../operator/configuration/revisions.ts";
import type { ConfigLoader, WatchedFile } from "./config-loader.ts";

/** Options of {@link ConfigReload}. */
interface ReloadOptions {
  readonly config: LiveConfig;
  readonly loader: ConfigLoader;
  /** The etag of what was loaded at the start. */
  readonly etag: string;
  /** Called with each configuration before it comes into force. */
  readonly onNext: (next: Config) => void;
  /** Stores the prices before the first call is charged at them. */
  readonly prices: Pick<PriceBook, "load">;
  readonly database: Pick<Database, "jobPool" | "url">;
  /** The file to watch. Default: none. */
  readonly file?: WatchedFile | undefined;
  /** Identifies this process. */
  readonly processId: string;
  readonly metrics: Pick<Metrics, "configInfo" | "gauge">;
  readonly log: Logger;
}

/** Interval between two runs of the commands of a configuration, whose secrets may change. */
const commandsMs = 300_000;

/** Interval between two looks at a file. Watching by `inotify` misses network file systems. */
const watchMs = 500;

/** Exchanges the configuration of a process, one attempt after the other. */
export class ConfigReload {
  readonly #options: ReloadOptions;
  readonly #listener: Listener;
  #last: Promise<unknown> = Promise.resolve();
  #etag: string;
  #secretFiles: readonly string[] = [];
  #included: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #loadMs = Date.now();
  #problem: string | undefined;

  constructor(options: ReloadOptions) {
    this.#options = options;
    this.#etag = options.etag;
    options.onNext(options.config.current);
    const { metrics, database } = options;
    const follow = (): void => void this.reload().catch(() => {});
    this.#listener = new Listener({
      url: database.url,
      channel: configChannel,
      onNotice: follow,
      onGap: follow,
    });
    this.#show();
    metrics.gauge("uas_config_load_time_seconds", () => this.#loadMs / 1000);
    metrics.gauge("uas_config_load_failed", () => (this.#problem === undefined ? 0 : 1));
    metrics.gauge("uas_config_file_differs", () => (this.#isEdited() ? 1 : 0));
  }

  /** Follows the changes of other processes. Resolves when it listens, or the first try failed. */
  async start(): Promise<void> {
    const { file } = this.#options;
    if (file !== undefined) {
      watchFile(file.path, { interval: watchMs, persistent: false }, this.#onEdit);
    }
    this.#watchFiles();
    this.#timer = setInterval(this.#refresh, commandsMs).unref();
    await this.#listener.start();
    await this.#last;
    await this.#store();
  }

  async stop(): Promise<void> {
    const { file } = this.#options;
    if (file !== undefined) unwatchFile(file.path, this.#onEdit);
    clearInterval(this.#timer);
    for (const path of this.#secretFiles) unwatchFile(path, this.#onSecret);
    for (const path of this.#included) unwatchFile(path, this.#onEdit);
    await this.#listener.close();
    await this.#last;
  }

  get status(): ConfigStatus {
    const { config, loader } = this.#options;
    return {
      config: config.current,
      etag: this.#etag,
      needsRestart: config.needsRestart(config.current),
      loadMs: this.#loadMs,
      problem: this.#problem,
      isFileDifferent: loader.isFileDifferent(config.hash),
    };
  }

  /** Whether the file waits to be loaded. It is not to be loaded while a revision is in force. */
  #isEdited(): boolean {
    const { config, isFileDifferent } = this.status;
    return config.revision === undefined && isFileDifferent;
  }

  /**
   * Reads the configuration and puts it into force, after all earlier attempts.
   *
   * @throws the reason why it cannot be used; then the previous one stays in force
   */
  reload(): Promise<Reloaded> {
    const attempt = this.#last.then(() => this.#attempt());
    this.#last = attempt.catch(() => {});
    return attempt;
  }

  readonly #onEdit = (): void => {
    const { file, log } = this.#options;
    const { isFileDifferent, config } = this.status;
    if (!isFileDifferent || file === undefined) return;
    if (config.revision !== undefined) {
      if (file.onEdit === "nothing") return;
      const text =
        "the configuration file was edited, but a revision is in force: `uas apply` the file, or go back to it by `uas rollback file`";
      log.warn({ file: file.path, config: config.source }, text);
    } else if (file.onEdit === "load") {
      void this.reload().catch(() => {});
    } else if (file.onEdit === "log") {
      const text =
        "the configuration file was edited and is not in force: load it by SIGHUP or `uas reload`";
      log.warn({ file: file.path }, text);
    }
  };

  /** A secret in a file has changed. */
  readonly #onSecret = (): void => void this.reload().catch(() => {});

  readonly #refresh = (): void => {
    if (hasCommands(this.#options.config.document)) void this.reload().catch(() => {});
  };

  /** Watches the files that the configuration in force includes, and those with its secrets. */
  #watchFiles(): void {
    const { config, loader } = this.#options;
    for (const path of this.#secretFiles) unwatchFile(path, this.#onSecret);
    this.#secretFiles = loader.secretFiles(config.document);
    const options = { interval: watchMs, persistent: false };
    for (const path of this.#secretFiles) watchFile(path, options, this.#onSecret);
    for (const path of this.#included) unwatchFile(path, this.#onEdit);
    this.#included = config.current.included ?? [];
    for (const path of this.#included) watchFile(path, options, this.#onEdit);
  }

  async #attempt(): Promise<Reloaded> {
    const { loader, log } = this.#options;
    const before = this.#problem;
    try {
      const { config, etag } = await loader.load();
      const isChanged = await this.#exchange(config);
      this.#etag = etag;
      this.#problem = undefined;
      if (isChanged || before !== undefined) await this.#store();
      return { isChanged, needsRestart: this.#options.config.needsRestart(config) };
    } catch (error) {
      this.#problem = failureMessage(error);
      const reason = this.#problem;
      log.error({ reason }, "the configuration was not loaded; the previous one stays in force");
      await this.#store();
      throw error;
    }
  }

  /** @returns whether anything differs from the configuration before */
  async #exchange(next: Config): Promise<boolean> {
    const { config, prices, onNext, log } = this.#options;
    if (isDeepStrictEqual(next, config.current)) return false;
    onNext(next);
    await prices.load(next.models.values());
    const needsRestart = config.exchange(next);
    this.#loadMs = Date.now();
    if (this.#timer !== undefined) this.#watchFiles();
    this.#show();
    const { source, hash } = next;
    log.info({ config: source, hash, needsRestart }, "the configuration was loaded");
    for (const warning of next.warnings) log.warn({ warning }, "the configuration has a warning");
    return true;
  }

  #show(): void {
    const { config, metrics } = this.#options;
    metrics.configInfo.reset();
    metrics.configInfo.set({ source: config.source, hash: config.hash }, 1);
  }

  /** Shows the other processes what is in force here. A failure is logged: calls do not need it. */
  async #store(): Promise<void> {
    const { database, processId, log } = this.#options;
    const { config, needsRestart, problem = null } = this.status;
    const state = {
      source: config.source,
      hash: config.hash,
      load_time: new Date(this.#loadMs),
      needs_restart: needsRestart,
      problem,
    };
    await storeProcessState(database.jobPool, processId, state).catch((err: unknown) =>
      log.warn({ err }, "the loaded configuration could not be recorded for other processes"),
    );
  }
}
