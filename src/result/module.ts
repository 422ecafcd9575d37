/** Result files as a server has them: the store of the configuration, the job, the address. */
import { join } from "node:path";
import type { Pool } from "pg";
import type { Config, Settings, StorageConfig } from "../config/config.ts";
import { createGuardedClient, type GuardedClient } from "../http/guarded-client.ts";
import { createResultJobs, type ResultJobs } from "./jobs.ts";
import { createLocalStorage, type ResultStorage } from "./storage.ts";
import { createResultFiles, type Measure } from "./result-files.ts";
import type { ResultFiles } from "./result.ts";
import { createS3Storage } from "./s3-storage.ts";

/** What {@link openResults} needs. */
export interface OpenResultsOptions {
  readonly pool: Pool;
  readonly settings: Pick<Settings, "dataDir" | "listen" | "publicUrl">;
  readonly config: Pick<Config, "storage">;
  /** Told what an operator should know, without secrets. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Fetches from addresses that vendors name. Default: one that reaches public addresses only. */
  readonly client?: GuardedClient;
  /** Tells how long films and sounds are. Default: nobody does. */
  readonly measure?: Measure;
}

/** Result files, and what is to be started and closed with them. */
export interface Results extends ResultFiles {
  readonly jobs: ResultJobs;
  /** Tells where the gateway listens, which is its address where the settings name none. Returns the same. */
  servedAt<Urls extends { readonly publicUrl: string }>(urls: Urls): Urls;
  /** Ends the jobs and closes the store. */
  stop(): Promise<void>;
}

/** Makes them. With a bucket, files that a folder got before are still found there until they expire. */
export function openResults(options: OpenResultsOptions): Results {
  const { pool, settings, config, warn, measure, client = createGuardedClient() } = options;
  const folder = join(settings.dataDir, "results");
  const storages = storagesOf(config.storage, folder);
  const spoolFolder = join(folder, "incoming");
  const jobs = createResultJobs({ pool, storages, spoolFolder, warn });
  const { host, port } = settings.listen;
  let listening = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const publicUrl = (): string => settings.publicUrl ?? listening;
  return {
    ...createResultFiles({
      pool,
      storages,
      spoolFolder,
      client,
      publicUrl,
      ...(measure && { measure }),
    }),
    jobs,
    servedAt(urls) {
      listening = urls.publicUrl.replace(/\/$/, "");
      return urls;
    },
    async stop() {
      await jobs.stop();
      for (const each of storages) each.close();
    },
  };
}

function storagesOf(
  storage: StorageConfig,
  folder: string,
): readonly [ResultStorage, ...ResultStorage[]] {
  const local = createLocalStorage(folder);
  return storage.kind === "s3" ? [createS3Storage(storage), local] : [local];
}
