/** A place for bytes, by their hash. */
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
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

/* A folder on this machine, or one that all machines share. */

/** Keeps files as `{folder}/{first two digits}/{hash}`: no folder becomes too long. */
export function createLocalStorage(folder: string): ResultStorage {
  const folderOf = (sha256: string): string => join(folder, sha256.slice(0, 2));
  const pathOf = (sha256: string): string => join(folderOf(sha256), sha256);
  return {
    kind: "local",
    async check() {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    },
    async keep({ path, sha256, bytes }) {
      // A file that is shorter than it should be was cut by a disk that lost it: replaced.
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
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}

/** Makes the name durable too. Windows cannot do that to a folder, and needs it not. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
