/** What a supervisor and its workers say to each other, over the channel that Node.js opens between them. */
import type { WorkerName } from "../core/worker-name.ts";
import type { Config, Settings } from "../config/config.ts";
import type { MetricSnapshot } from "../core/metric-types.ts";

/** Where a worker listens. */
export interface ListenUrls {
  readonly publicUrl: string;
  readonly internalUrl: string;
}

/** What a worker serves with. All workers have the same, also those that are started later: the file may have changed. */
export interface WorkerOrder {
  readonly settings: Settings;
  readonly config: Config;
  /** One that replaces a dead one has its number. */
  readonly worker: WorkerName;
  /** The address of the embedded PostgreSQL, which the supervisor runs; `undefined`: there is none. */
  readonly embeddedUrl: string | undefined;
}

/** What the supervisor says. */
export type ToWorker =
  | { readonly kind: "start"; readonly order: WorkerOrder }
  /** The folder of the console's pages; `undefined`: they cannot be served. */
  | { readonly kind: "pages"; readonly folder: string | undefined }
  /** Asks for the worker's own metrics. */
  | { readonly kind: "readOwn"; readonly id: number }
  /** Answers `readAll`. */
  | { readonly kind: "all"; readonly id: number; readonly text: string }
  /** Drain, then end. */
  | { readonly kind: "stop" };

/** What a worker says. */
export type FromWorker =
  /** It listens to its supervisor: what is said before would be lost. */
  | { readonly kind: "here" }
  | { readonly kind: "listening"; readonly urls: ListenUrls }
  /** It cannot start; `reason` is one line. It ends by itself. */
  | { readonly kind: "failed"; readonly reason: string }
  /** Answers `readOwn`. */
  | { readonly kind: "own"; readonly id: number; readonly metrics: readonly MetricSnapshot[] }
  /** Asks for the metrics of all workers. */
  | { readonly kind: "readAll"; readonly id: number };
