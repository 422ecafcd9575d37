/**
 * Runs several workers, each a process with its own gateway. They share the listening ports: this process accepts
 * every connection and passes it to the next worker.
 */
import cluster, { type Worker } from "node:cluster";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { AggregatorRegistry, Registry } from "prom-client";
import { Gauge, type MetricSnapshot } from "../core/metric-types.ts";
import { workerMetrics } from "../core/metrics.ts";
import type { FromWorker, ListenUrls, ToWorker, WorkerOrder } from "./worker-messages.ts";

/** Options of a {@link Supervisor}. */
interface SupervisorOptions {
  /** The order that every worker gets. */
  readonly order: Omit<WorkerOrder, "worker">;
  /** The folder of the console's pages; `undefined` where there is none. */
  readonly pages: Promise<string | undefined>;
  readonly log: Logger;
  /** Writes whole lines of workers' logs. */
  readonly write: (lines: string) => void;
}

/** A worker that ran this long before it exited is restarted at once, in milliseconds. */
const steadyMs = 60_000;

/** Pause before a worker that exited sooner is restarted, in milliseconds. It doubles each time. */
const pauseMs = 500;

/** Longest pause, in milliseconds. */
const pauseMsMax = 30_000;

/** Deadline for a worker to report its metrics, in milliseconds. After it, the last report counts. */
const metricsMs = 1_000;

/** One worker position; restarts keep it. */
interface Slot {
  readonly number: number;
  /** `undefined` between exit and restart. */
  process: Worker | undefined;
  /** `undefined` until it serves. */
  servesSinceMs: number | undefined;
  /** The reason it gave for a failed start. */
  failure: string | undefined;
  /** Consecutive early exits. */
  earlyDeaths: number;
  timer: NodeJS.Timeout | undefined;
}

/** Starts, restarts and stops the workers. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #slots: readonly Slot[];
  readonly #metrics = new WorkerMetrics();
  readonly #asked = new Map<number, (metrics: readonly MetricSnapshot[] | undefined) => void>();
  #askedCount = 0;
  /** During start: workers that do not listen yet. */
  readonly #starting = new Set<Slot>();
  readonly #started = Promise.withResolvers<ListenUrls>();
  #isStopping = false;
  /** Failures while draining. */
  readonly #failures: string[] = [];
  readonly #stopped = Promise.withResolvers<void>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.order.settings.workers }, (_, index) => ({
      number: index + 1,
      process: undefined,
      servesSinceMs: undefined,
      failure: undefined,
      earlyDeaths: 0,
      timer: undefined,
    }));
  }

  /** Starts all workers. Resolves when every one serves. @throws the first failure, after all workers have ended */
  async start(): Promise<ListenUrls> {
    cluster.setupPrimary({
      exec: fileURLToPath(new URL("../../bin/uas-worker.js", import.meta.url)),
      args: [],
      // Structured clone: the configuration holds maps and bigints.
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

  /** Drains all workers. Resolves when the last has ended. @throws where one did not end cleanly */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const slot of this.#slots) {
      clearTimeout(slot.timer);
      this.#send(slot, { kind: "stop" });
    }
    await this.#ended();
    if (this.#failures.length > 0) throw new Error(this.#failures.join("; "));
  }

  /** Kills all workers. Recovery releases their holds. */
  kill(): void {
    for (const { process } of this.#slots) process?.process.kill("SIGKILL");
  }

  #ended(): Promise<void> {
    if (this.#slots.every(({ process }) => process === undefined)) this.#stopped.resolve();
    return this.#stopped.promise;
  }

  #fork(slot: Slot): void {
    const worker = cluster.fork();
    slot.process = worker;
    slot.servesSinceMs = undefined;
    slot.failure = undefined;
    worker.on("message", (message: FromWorker) => this.#onMessage(slot, message));
    // The worker is exiting; its exit event is handled elsewhere.
    worker.on("error", () => {});
    if (worker.process.stdout) forwardLines(worker.process.stdout, this.#options.write);
    // Unlike `exit`, `close` comes after the last output.
    worker.process.once("close", (code, signal) =>
      this.#onEnd(slot, { pid: worker.process.pid, code, signal }),
    );
  }

  #send({ process }: Slot, message: ToWorker): void {
    if (process?.isConnected()) process.send(message);
  }

  #onMessage(slot: Slot, message: FromWorker): void {
    switch (message.kind) {
      case "here":
        this.#tell(slot);
        break;
      case "listening":
        this.#onListening(slot, message.urls);
        break;
      case "failed":
        slot.failure = message.reason;
        break;
      case "own":
        this.#asked.get(message.id)?.(message.metrics);
        break;
      case "readAll":
        void this.#readMetrics().then((text) =>
          this.#send(slot, { kind: "all", id: message.id, text }),
        );
        break;
    }
  }

  #tell(slot: Slot): void {
    const { order, pages } = this.#options;
    const { process: told } = slot;
    this.#send(slot, { kind: "start", order: { ...order, worker: slot.number } });
    if (this.#isStopping) this.#send(slot, { kind: "stop" });
    void pages.then((folder) => {
      if (slot.process === told) this.#send(slot, { kind: "pages", folder });
    });
  }

  #onListening(slot: Slot, urls: ListenUrls): void {
    const { log } = this.#options;
    slot.servesSinceMs = performance.now();
    log.info({ worker: slot.number, pid: slot.process?.process.pid }, "a worker serves");
    if (this.#starting.delete(slot) && this.#starting.size === 0) this.#started.resolve(urls);
  }

  #onEnd(slot: Slot, end: { pid: number | undefined; code: number | null; signal: string | null }) {
    slot.process = undefined;
    const { number: worker, failure } = slot;
    const how = failure ?? `worker ${worker} ended with ${end.signal ?? `exit code ${end.code}`}`;
    if (this.#starting.size > 0) this.#started.reject(new Error(failure ?? `${how} at its start`));
    if (this.#isStopping) {
      if (end.code !== 0) this.#failures.push(how);
      void this.#ended();
      return;
    }
    if (this.#starting.size > 0) return;
    this.#metrics.restart(worker);
    const servedMs = performance.now() - (slot.servesSinceMs ?? Number.POSITIVE_INFINITY);
    const isSteady = servedMs >= steadyMs;
    slot.earlyDeaths = isSteady ? 0 : slot.earlyDeaths + 1;
    const waitMs = isSteady ? 0 : Math.min(pauseMs * 2 ** (slot.earlyDeaths - 1), pauseMsMax);
    const fields = { worker, ...end, reason: failure, waitMs };
    this.#options.log.error(fields, "a worker has died: it is started again");
    slot.timer = setTimeout(() => this.#fork(slot), waitMs);
  }

  async #readMetrics(): Promise<string> {
    await Promise.all(this.#slots.map((slot) => this.#readOwn(slot)));
    return this.#metrics.read();
  }

  /** Requests the metrics of one worker. */
  async #readOwn(slot: Slot): Promise<void> {
    const { process: asked } = slot;
    if (!asked?.isConnected()) return;
    const id = ++this.#askedCount;
    const answer = Promise.withResolvers<readonly MetricSnapshot[] | undefined>();
    this.#asked.set(id, answer.resolve);
    const late = setTimeout(() => answer.resolve(undefined), metricsMs);
    this.#send(slot, { kind: "readOwn", id });
    const metrics = await answer.promise;
    clearTimeout(late);
    this.#asked.delete(id);
    if (metrics !== undefined && slot.process === asked) this.#metrics.update(slot.number, metrics);
  }
}

/** Forwards whole lines. An incomplete last line is dropped: the worker was killed while writing it. */
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
 * A counter must not decrease when a worker exits: monitoring would take that for a restart of the whole gateway
 * and count everything the other workers served again. So the last report of an exited worker is kept.
 */
export class WorkerMetrics {
  readonly #own = new Registry();
  readonly #restarts = workerMetrics(this.#own).workerRestarts;
  /** By worker number. */
  readonly #latest = new Map<number, readonly MetricSnapshot[]>();
  #departed: readonly MetricSnapshot[] = [];

  constructor() {
    const startSeconds = Date.now() / 1000 - process.uptime();
    void new Gauge({
      registry: this.#own,
      name: "process_start_time_seconds",
      help: "Start time of the supervisor since unix epoch in seconds.",
      aggregator: "first",
      read: () => startSeconds,
    });
  }

  /** Stores a worker's metrics since its start. */
  update(worker: number, metrics: readonly MetricSnapshot[]): void {
    this.#latest.set(worker, metrics);
  }

  /** Keeps the totals of a worker that exited and is restarted. */
  restart(worker: number): void {
    this.#restarts.inc();
    const last = this.#latest.get(worker) ?? [];
    this.#latest.delete(worker);
    const counted = last.filter(({ type }) => type !== "gauge");
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
