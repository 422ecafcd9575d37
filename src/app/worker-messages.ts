/** Messages between a supervisor and its workers, over Node's IPC channel. */
import type { JournalNames } from "../billing/journal/journal-files.ts";
import type { Config, Settings } from "../config/config.ts";
import type { MetricSnapshot } from "../observe/metrics.ts";

/** The addresses on which a worker listens. */
export interface ListenUrls {
  readonly publicUrl: string;
  readonly internalUrl: string;
}

/**
 * The settings with which a worker serves. Restarted workers get the same order, since the
 * configuration file may have changed meanwhile.
 */
export interface WorkerOrder {
  readonly settings: Settings;
  readonly config: Config;
  /** The number of this worker, from 1. A restarted worker keeps it. */
  readonly worker: number;
  /** The journal files of this worker, which no other process uses. */
  readonly journal: JournalNames;
  /** The URL of the embedded PostgreSQL that the supervisor runs; undefined if there is none. */
  readonly embeddedUrl: string | undefined;
}

/** Messages to a worker. */
export type ToWorker =
  | { readonly kind: "start"; readonly order: WorkerOrder }
  /** The folder of the console's pages; undefined if they cannot be served. */
  | { readonly kind: "pages"; readonly folder: string | undefined }
  /** Requests the metrics of this worker. */
  | { readonly kind: "readOwn"; readonly id: number }
  /** Answers `readAll`. */
  | { readonly kind: "all"; readonly id: number; readonly text: string }
  /** Load the configuration again. */
  | { readonly kind: "reload" }
  /** Drain, then exit. `isReplaced`: another worker already serves in its place. */
  | { readonly kind: "stop"; readonly isReplaced: boolean };

/** Messages from a worker. */
export type FromWorker =
  /** The worker listens for messages; earlier ones would be lost. */
  | { readonly kind: "here" }
  | { readonly kind: "listening"; readonly urls: ListenUrls }
  /** The start failed; `reason` is one line. The worker exits by itself. */
  | { readonly kind: "failed"; readonly reason: string }
  /** Answers `readOwn`; with id 0 it is sent unrequested, before the worker exits. */
  | { readonly kind: "own"; readonly id: number; readonly metrics: readonly MetricSnapshot[] }
  /** Makes the other workers load the configuration again. */
  | { readonly kind: "reloadOthers" }
  /** Requests the metrics of all workers. */
  | { readonly kind: "readAll"; readonly id: number };
