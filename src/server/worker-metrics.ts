/** The metrics of several workers as one text: what a worker has counted stays when it dies. */
import { AggregatorRegistry, Registry } from "prom-client";
import { Gauge, type MetricSnapshot } from "../metric-types.ts";
import { workerMetrics } from "../metrics.ts";

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
