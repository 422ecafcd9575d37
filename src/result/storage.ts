/** The interface of a store of bytes by their hash, and the store in a local folder. */
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { StorageConfig } from "../config/config.ts";
import { isMissingFile, syncFolder } from "../core/files.ts";
import type { ByteRange } from "./result.ts";
import type { Spooled } from "./spool.ts";

/** A store of bytes. Its errors are specific to it; the caller maps them. */
export interface ResultStorage {
  /** Its name in the database. */
  readonly kind: StorageConfig["kind"];
  /**
   * Checks that the store can be used.
   *
   * @throws with the reason if it cannot
   */
  check(): Promise<void>;
  /**
   * Stores a finished temporary file, which it may move. Does nothing if the same bytes are stored
   * already.
   */
  keep(file: Spooled, signal: AbortSignal): Promise<void>;
  /** Reads a part; undefined if there is no such file. */
  open(sha256: string, range: ByteRange): Promise<Readable | undefined>;
  /** Removes bytes, if they exist. */
  remove(sha256: string): Promise<void>;
  /** Closes its connections. */
  close(): void;
}

/** Creates a store in a folder of this machine, or one that all machines share. Files are named
 * `{folder}/{first two digits}/{hash}`, so that no folder has too many. */
export function createLocalStorage(folder: string): ResultStorage {
  const folderOf = (sha256: string): string => join(folder, sha256.slice(0, 2));
  const pathOf = (sha256: string): string => join(folderOf(sha256), sha256);
  return {
    kind: "local",
    async check() {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    },
    async keep({ path, sha256, bytes }) {
      // A file with another length was damaged by the disk, and is replaced.
      if ((await sizeOf(pathOf(sha256))) === bytes) return;
      await mkdir(folderOf(sha256), { recursive: true, mode: 0o700 });
      await rename(path, pathOf(sha256));
      await syncFolder(folderOf(sha256));
    },
    async open(sha256, range) {
      const handle = await open(pathOf(sha256), "r").catch(unlessMissing);
      return handle?.createReadStream(range);
    },
    remove: (sha256) => rm(pathOf(sha256), { force: true }),
    close: () => {},
  };
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(unlessMissing))?.size;
}

function unlessMissing(error: unknown): undefined {
  if (isMissingFile(error)) return undefined;
  throw error;
}
