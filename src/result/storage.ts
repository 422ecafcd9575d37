/** A place for bytes, by their hash. */
import type { Readable } from "node:stream";
import type { StorageConfig } from "../config/config.ts";
import type { ByteRange } from "./result.ts";
import type { Spooled } from "./spool.ts";

/** Keeps bytes. What fails is an error of its own making; who calls it says what that means. */
export interface ResultStorage {
  /** As the database calls it. */
  readonly kind: StorageConfig["kind"];
  /** Looks whether it can be used. Rejects where not, saying why. */
  check(): Promise<void>;
  /** Keeps a finished temporary file, which it may take over. Does nothing where the same bytes are there. */
  keep(file: Spooled, signal: AbortSignal): Promise<void>;
  /** Reads a part; `undefined`: there is no such file. */
  open(sha256: string, range: ByteRange): Promise<Readable | undefined>;
  /** Removes bytes; fine where there are none. */
  remove(sha256: string): Promise<void>;
  /** Closes its connections. */
  close(): void;
}
