/**
 * Keeps several workers running, each a process with a gateway of its own. They share the listening ports: this process
 * accepts each connection and hands it to the next worker.
 */
import cluster, { type Worker } from "node:cluster";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { AggregatorRegistry, Registry } from "prom-client";
import { Gauge, type MetricSnapshot } from "../core/metric-types.ts";
import { workerMetrics } from "../core/metrics.ts";
import { newId } from "../core/uuid.ts";
import type { FromWorker, ListenUrls, ToWorker, WorkerOrder } from "./worker-messages.ts";

/** What a {@link Supervisor} needs. */
interface SupervisorOptions {
  /** What all workers serve with. */
  readonly order: Omit<WorkerOrder, "worker">;
  /** The folder of the console's pages; `undefined`: there are none. */
  readonly pages: Promise<string | undefined>;
  readonly log: Logger;
  /** Takes whole lines of workers' logs. */
  readonly write: (lines: string) => void;
}

/** A worker that has served this long is started again at once when it dies, in milliseconds. */
const steadyMs = 60_000;

/** The first pause before a worker that died sooner is started again, in milliseconds; each further one is twice as long. */
const pauseMs = 500;

/** The longest pause, in milliseconds. */
const pauseMsMax = 30_000;

/** How long a worker may take to tell its metrics, in milliseconds; after that its last ones count. */
const metricsMs = 1_000;

/** One of the workers, whichever process it is at the moment. */
interface Slot {
  readonly number: number;
  /** `undefined`: it has died, and is not started again yet. */
  process: Worker | undefined;
  /** `undefined`: it does not serve yet. */
  servesSinceMs: number | undefined;
  /** Why it said that it cannot start. */
  failure: string | undefined;
  /** How often it died early, one time after the other. */
  earlyDeaths: number;
  timer: NodeJS.Timeout | undefined;
}

/** The workers. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #supervisorId = newId();
  readonly #slots: readonly Slot[];
  readonly #metrics = new WorkerMetrics();
  readonly #asked = new Map<number, (metrics: readonly MetricSnapshot[] | undefined) => void>();
  #askedCount = 0;
  /** Workers that have not listened yet, before all have. */
  readonly #starting = new Set<Slot>();
  readonly #started = Promise.withResolvers<ListenUrls>();
  #isStopping = false;
  /** What went wrong while they drained. */
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

  /** Starts all workers. Resolves when each of them serves. @throws the first failure; no worker is left then */
  async start(): Promise<ListenUrls> {
    cluster.setupPrimary({
      exec: fileURLToPath(new URL("../../bin/uas-worker.js", import.meta.url)),
      args: [],
      // The configuration has maps and big numbers.
      serialization: "advanced",
      // What workers write comes by way of this process: lines of several writers could tear each other apart.
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

  /** Has all workers drain. Resolves when the last one has ended. @throws where one of them did not end well */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const slot of this.#slots) {
      clearTimeout(slot.timer);
      this.#send(slot, { kind: "stop" });
    }
    await this.#ended();
    if (this.#failures.length > 0) throw new Error(this.#failures.join("; "));
  }

  /** Ends all workers at once. What they held comes back by itself. */
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
    // A message to a worker that is dying: its end says the rest.
    worker.on("error", () => {});
    if (worker.process.stdout) forwardLines(worker.process.stdout, this.#options.write);
    // Unlike `exit`, after the last of its output.
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
    const worker = { supervisorId: this.#supervisorId, number: slot.number };
    this.#send(slot, { kind: "start", order: { ...order, worker } });
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

  /** Asks a worker for what it has counted. */
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

/** Passes on whole lines. What stands after the last one is dropped: the worker was killed in the middle of it. */
function forwardLines(from: Readable, write: (lines: string) => void): void {
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    if (end > 0) write(rest + text.slice(0, end));
    rest = end > 0 ? text.slice(end) : rest + text;
  });
}

/* The metrics of several workers as one text: what a worker has counted stays when it dies. */

/**
 * Adds up what workers have counted.
 *
 * A counter must not fall when a worker dies: a monitoring system takes that for a restart of the whole gateway, and
 * counts everything that the other workers have served once more. So what a dead worker last told is kept.
 */
export class WorkerMetrics {
  readonly #own = new Registry();
  readonly #restarts = workerMetrics(this.#own).workerRestarts;
  /** By number of the worker. */
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

  /** What a worker says that it has counted since its start. */
  update(worker: number, metrics: readonly MetricSnapshot[]): void {
    this.#latest.set(worker, metrics);
  }

  /** A worker has died, and is started again. */
  restart(worker: number): void {
    this.#restarts.inc();
    const last = this.#latest.get(worker) ?? [];
    this.#latest.delete(worker);
    const counted = last.filter(({ type }) => type !== "gauge");
    // What adding makes has its values in plain sight, beside the methods of a metric.
    const sum: unknown = add([this.#departed, counted]).getMetricsAsArray();
    this.#departed = sum as readonly MetricSnapshot[];
  }

  /** The text for a monitoring system. */
  async read(): Promise<string> {
    const own: unknown = await this.#own.getMetricsAsJSON();
    const all = [own as readonly MetricSnapshot[], ...this.#latest.values(), this.#departed];
    return add(all).metrics();
  }
}

/** How the values of a metric become one is the first one's to say. */
function add(all: readonly (readonly MetricSnapshot[])[]): Registry {
  return AggregatorRegistry.aggregate([...all]);
}
