/** The store of exported files: the data folder or the bucket, as for result files. */
import { copyFile, mkdir, open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { StorageConfig } from "../config/config.ts";
import { isMissingFile, syncFolder } from "../core/files.ts";
import type { ObjectStore } from "../core/object-store.ts";
import { createS3Objects } from "./s3-storage.ts";

/** Creates the store: the bucket of `storage`, or else files in the data folder. */
export function createObjectStore(storage: StorageConfig, dataDir: string): ObjectStore {
  return storage.kind === "s3" ? createS3Objects(storage) : createLocalObjects(dataDir);
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function createLocalObjects(folder: string): ObjectStore {
  return {
    async put(name, path) {
      const target = join(folder, name);
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      // Under its name the file is complete, whenever the process or the machine stops.
      const copy = `${target}.part`;
      await copyFile(path, copy);
      await syncFile(copy);
      await rename(copy, target);
      await syncFolder(dirname(target));
    },
    async open(name) {
      const handle = await open(join(folder, name), "r").catch((error: unknown) => {
        if (isMissingFile(error)) return undefined;
        throw error;
      });
      return handle?.createReadStream();
    },
    close: () => {},
  };
}
