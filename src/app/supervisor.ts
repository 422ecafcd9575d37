/**
 * Runs several workers, each a process with a separate gateway. They share the listening ports:
 * this process accepts every connection and passes it to the next worker. So workers can be
 * replaced one by one without a refused connection.
 */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { join } from "node:path";
import type { Logger } from "pino";
import {
  JournalFiles,
  journalFolder,
  type JournalNames,
} from "../billing/journal/journal-files.ts";
import type { Config } from "../config/config.ts";
import { AggregatorRegistry, Gauge, Registry } from "prom-client";
import { failureMessage } from "../core/error-words.ts";
import { packageFolder } from "../core/package.ts";
import { type MetricSnapshot, workerMetrics } from "../observe/metrics.ts";
import type { ReadConfig } from "./config-loader.ts";
import type { WorkerOrder, ListenUrls, FromWorker, ToWorker } from "./worker-messages.ts";

/** Options of a {@link Supervisor}. */
interface SupervisorOptions {
  /** The order that every worker gets. */
  readonly order: Omit<WorkerOrder, "worker" | "journal">;
  /** The folder of the console's pages; undefined if there is none. */
  readonly pages: Promise<string | undefined>;
  readonly log: Logger;
  /** Writes whole lines of workers' logs. */
  readonly write: (lines: string) => void;
}

/** A worker that ran at least this long before it exited is restarted at once. */
const steadyMs = 60_000;

/** Pause before a worker that exited sooner is restarted. It doubles each time. */
const pauseMs = 500;

/** Longest pause. */
const pauseMsMax = 30_000;

/** Deadline for a worker to report its metrics. After it, the last report counts. */
const metricsMs = 1_000;

/** One worker position; restarts keep it. */
interface Slot {
  readonly number: number;
  /** `undefined` between exit and restart. */
  process: Worker | undefined;
  /** While a worker is replaced: resolves when the new one serves, rejects when it has failed. */
  replacing: PromiseWithResolvers<void> | undefined;
  /** `undefined` until it serves. */
  servesSinceMs: number | undefined;
  /** The reported reason for a failed start. */
  failure: string | undefined;
  /** Consecutive early exits. */
  earlyDeaths: number;
  timer: NodeJS.Timeout | undefined;
}

/** Starts, restarts and stops the workers. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  #order: SupervisorOptions["order"];
  readonly #slots: readonly Slot[];
  readonly #metrics = new WorkerMetrics();
  readonly #journals: JournalFiles;
  /** The journal files of the running workers. */
  readonly #journalOf = new Map<Worker, JournalNames>();
  readonly #asked = new Map<number, () => void>();
  #askedCount = 0;
  /** Workers that were replaced and still drain. */
  readonly #leaving = new Set<Worker>();
  #restarting: Promise<void> = Promise.resolve();
  /** During start: workers that do not listen yet. */
  readonly #starting = new Set<Slot>();
  readonly #started = Promise.withResolvers<ListenUrls>();
  #isStopping = false;
  /** Failures while draining. */
  readonly #failures: string[] = [];
  readonly #stopped = Promise.withResolvers<void>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#order = options.order;
    this.#journals = new JournalFiles(journalFolder(options.order.settings.dataDir));
    this.#slots = Array.from({ length: options.order.settings.workers }, (_, index) => ({
      number: index + 1,
      process: undefined,
      replacing: undefined,
      servesSinceMs: undefined,
      failure: undefined,
      earlyDeaths: 0,
      timer: undefined,
    }));
  }

  /**
   * Starts all workers. Resolves when every one serves.
   *
   * @param config the configuration in force, for workers that cannot read it
   * @throws the first failure, after all workers have ended
   */
  async start(config: Config): Promise<ListenUrls> {
    this.#order = { ...this.#order, config };
    cluster.setupPrimary({
      exec: join(packageFolder, "bin", "uas-worker.js"),
      args: [],
      // Structured clone: the configuration contains maps and bigints.
      serialization: "advanced",
      // Worker output passes through this process, since concurrent writers could interleave lines.
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
    for (const slot of this.#slots) this.#starting.add(slot);
    for (const slot of this.#slots) this.#fork(slot);
    try {
      return await this.#started.promise;
    } catch (error) {
      this.#isStopping = true;
      this.kill();
      await this.#ended();
      this.#failures.length = 0;
      throw error;
    }
  }

  /**
   * Replaces all workers one by one, with the current configuration: each new one serves before the
   * old one stops. If the configuration is faulty or a new worker fails, the old ones stay. Never
   * rejects.
   */
  restart(readConfig: ReadConfig): Promise<void> {
    this.#restarting = this.#restarting.then(() => this.#restartAll(readConfig));
    return this.#restarting;
  }

  /**
   * Drains all workers. Resolves when the last has ended.
   *
   * @throws if one did not end cleanly
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const slot of this.#slots) {
      clearTimeout(slot.timer);
      send(slot.process, { kind: "stop", isReplaced: false });
    }
    // A worker whose replacement does not serve yet has received no stop order; for the others this
    // is a repetition.
    for (const worker of this.#leaving) send(worker, { kind: "stop", isReplaced: false });
    await this.#ended();
    if (this.#failures.length > 0) throw new Error(this.#failures.join("; "));
  }

  /** Kills all workers. Recovery releases their holds. */
  kill(): void {
    const all = [...this.#slots.map(({ process }) => process), ...this.#leaving];
    for (const worker of all) worker?.process.kill("SIGKILL");
  }

  #ended(): Promise<void> {
    const hasEnded = this.#slots.every(({ process }) => process === undefined);
    if (hasEnded && this.#leaving.size === 0) this.#stopped.resolve();
    return this.#stopped.promise;
  }

  async #restartAll(readConfig: ReadConfig): Promise<void> {
    const { log } = this.#options;
    const before = this.#order;
    try {
      this.#order = { ...before, config: await readConfig() };
      log.info("replacing all workers");
      for (const slot of this.#slots) {
        if (this.#isStopping) return;
        await this.#replace(slot);
      }
      log.info("all workers are replaced");
    } catch (error) {
      this.#order = before;
      if (this.#isStopping) return;
      log.error({ reason: failureMessage(error) }, "workers were not replaced");
    }
  }

  /**
   * Starts another worker in a slot; when it serves, the old one drains. Resolves when that has
   * ended.
   */
  async #replace(slot: Slot): Promise<void> {
    const { process: old, servesSinceMs } = slot;
    // A worker that is about to be restarted gets the new order anyway.
    if (old === undefined) return;
    slot.replacing = Promise.withResolvers();
    this.#leaving.add(old);
    this.#fork(slot);
    try {
      await slot.replacing.promise;
    } catch (error) {
      if (this.#isStopping) throw error;
      this.#leaving.delete(old);
      slot.process = old;
      slot.servesSinceMs = servesSinceMs;
      if (old.isDead()) this.#fork(slot);
      throw error;
    } finally {
      slot.replacing = undefined;
    }
    const ended = old.isDead() ? undefined : once(old.process, "close");
    send(old, { kind: "stop", isReplaced: true });
    await ended;
  }

  #fork(slot: Slot): void {
    const worker = cluster.fork();
    this.#journalOf.set(worker, this.#journals.assign());
    slot.process = worker;
    slot.servesSinceMs = undefined;
    slot.failure = undefined;
    worker.on("message", (message: FromWorker) => this.#onMessage(slot, worker, message));
    // The worker is exiting; its exit event is handled elsewhere.
    worker.on("error", () => {});
    if (worker.process.stdout) forwardLines(worker.process.stdout, this.#options.write);
    // Unlike `exit`, `close` is emitted after the last output.
    worker.process.once("close", (code, signal) =>
      this.#onEnd(slot, worker, { pid: worker.process.pid, code, signal }),
    );
  }

  #onMessage(slot: Slot, worker: Worker, message: FromWorker): void {
    switch (message.kind) {
      case "here":
        this.#tell(slot, worker);
        break;
      case "listening":
        this.#onListening(slot, message.urls);
        break;
      case "failed":
        slot.failure = message.reason;
        break;
      case "reloadOthers":
        for (const { process: other } of this.#slots) {
          if (other !== worker) send(other, { kind: "reload" });
        }
        break;
      case "own":
        this.#metrics.update(worker.id, message.metrics);
        this.#asked.get(message.id)?.();
        break;
      case "readAll":
        void this.#readMetrics().then((text) =>
          send(worker, { kind: "all", id: message.id, text }),
        );
        break;
    }
  }

  #tell(slot: Slot, told: Worker): void {
    const journal = this.#journalOf.get(told);
    if (journal === undefined) return;
    send(told, { kind: "start", order: { ...this.#order, worker: slot.number, journal } });
    if (this.#isStopping) send(told, { kind: "stop", isReplaced: false });
    void this.#options.pages.then((folder) => send(told, { kind: "pages", folder }));
  }

  #onListening(slot: Slot, urls: ListenUrls): void {
    const { log } = this.#options;
    slot.servesSinceMs = performance.now();
    log.info({ worker: slot.number, pid: slot.process?.process.pid }, "a worker serves");
    slot.replacing?.resolve();
    if (this.#starting.delete(slot) && this.#starting.size === 0) this.#started.resolve(urls);
  }

  #onEnd(slot: Slot, ended: Worker, end: WorkerEnd): void {
    this.#metrics.keep(ended.id);
    const journal = this.#journalOf.get(ended);
    if (journal !== undefined) this.#journals.release(journal);
    this.#journalOf.delete(ended);
    if (this.#leaving.delete(ended)) {
      this.#options.log.info({ worker: slot.number, ...end }, "a replaced worker has ended");
      if (this.#isStopping) void this.#ended();
      return;
    }
    slot.process = undefined;
    const { number: worker, failure } = slot;
    const how = failure ?? `worker ${worker} ended with ${end.signal ?? `exit code ${end.code}`}`;
    if (this.#starting.size > 0) this.#started.reject(new Error(failure ?? `${how} at its start`));
    slot.replacing?.reject(new Error(how));
    if (this.#isStopping) {
      if (end.code !== 0) this.#failures.push(how);
      void this.#ended();
      return;
    }
    if (this.#starting.size > 0 || slot.replacing) return;
    this.#metrics.countRestart();
    const servedMs = performance.now() - (slot.servesSinceMs ?? Number.POSITIVE_INFINITY);
    const isSteady = servedMs >= steadyMs;
    slot.earlyDeaths = isSteady ? 0 : slot.earlyDeaths + 1;
    const waitMs = isSteady ? 0 : Math.min(pauseMs * 2 ** (slot.earlyDeaths - 1), pauseMsMax);
    const fields = { worker, ...end, reason: failure, waitMs };
    this.#options.log.error(fields, "a worker has died; restarting it");
    slot.timer = setTimeout(() => this.#fork(slot), waitMs);
  }

  async #readMetrics(): Promise<string> {
    const all = [...this.#slots.map(({ process }) => process), ...this.#leaving];
    await Promise.all(all.map((worker) => this.#readOwn(worker)));
    return this.#metrics.read();
  }

  /** Requests the metrics of one worker. */
  async #readOwn(worker: Worker | undefined): Promise<void> {
    if (!worker?.isConnected()) return;
    const id = ++this.#askedCount;
    const answer = Promise.withResolvers<void>();
    this.#asked.set(id, answer.resolve);
    const late = setTimeout(answer.resolve, metricsMs);
    send(worker, { kind: "readOwn", id });
    await answer.promise;
    clearTimeout(late);
    this.#asked.delete(id);
  }
}

/** The exit of a worker's process. */
interface WorkerEnd {
  readonly pid: number | undefined;
  readonly code: number | null;
  readonly signal: string | null;
}

function send(worker: Worker | undefined, message: ToWorker): void {
  if (worker?.isConnected()) worker.send(message);
}

/**
 * Forwards whole lines. An incomplete last line is dropped: the worker was killed while writing it.
 */
function forwardLines(from: Readable, write: (lines: string) => void): void {
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    if (end > 0) write(rest + text.slice(0, end));
    rest = end > 0 ? text.slice(end) : rest + text;
  });
}

/**
 * Adds up the metrics of workers.
 *
 * A counter must not decrease when a worker exits: monitoring would interpret that as a restart of
 * the whole gateway, and count the work of the other workers again. So the last report of an exited
 * worker is kept.
 */
export class WorkerMetrics {
  readonly #own = new Registry();
  readonly #restarts = workerMetrics(this.#own).workerRestarts;
  /** By the id of the worker's process. */
  readonly #latest = new Map<number, readonly MetricSnapshot[]>();
  #departed: readonly MetricSnapshot[] = [];

  constructor() {
    const startSeconds = Date.now() / 1000 - process.uptime();
    const started = new Gauge({
      registers: [this.#own],
      name: "process_start_time_seconds",
      help: "Start time of the supervisor since unix epoch in seconds.",
      aggregator: "first",
    });
    started.set(startSeconds);
  }

  /** Stores a worker's metrics since its start. */
  update(worker: number, metrics: readonly MetricSnapshot[]): void {
    this.#latest.set(worker, metrics);
  }

  /** Counts a worker that died and is restarted. */
  countRestart(): void {
    this.#restarts.inc();
  }

  /** Keeps the totals of a worker that has ended. */
  keep(worker: number): void {
    const last = this.#latest.get(worker) ?? [];
    this.#latest.delete(worker);
    const counted = last.filter(({ type }) => String(type) !== "gauge");
    // The aggregated metrics have plain values instead of methods.
    const sum: unknown = add([this.#departed, counted]).getMetricsAsArray();
    this.#departed = sum as readonly MetricSnapshot[];
  }

  /** The metrics as Prometheus text. */
  async read(): Promise<string> {
    const own: unknown = await this.#own.getMetricsAsJSON();
    const all = [own as readonly MetricSnapshot[], ...this.#latest.values(), this.#departed];
    return add(all).metrics();
  }
}

/** The first worker's metric decides how values are combined. */
function add(all: readonly (readonly MetricSnapshot[])[]): Registry {
  return AggregatorRegistry.aggregate([...all]);
}
