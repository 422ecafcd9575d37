/** The interface of a store of named files, for exports. */
import type { Readable } from "node:stream";

/** A store of named files. Its errors are specific to it. */
export interface ObjectStore {
  /**
   * Stores a local file durably, under a name such as `exports/calls/2026/11/x.jsonl.gz`. Replaces
   * a file of the same name.
   */
  put(name: string, path: string, signal: AbortSignal): Promise<void>;
  /** Reads a file; undefined if there is none of this name. */
  open(name: string): Promise<Readable | undefined>;
  /** Closes its connections. */
  close(): void;
}
