/** Connects the parts of the result room: the configured store, the jobs, the public address. */
import { join } from "node:path";
import type { Pool } from "pg";
import type { Config, Settings, StorageConfig } from "../config/config.ts";
import { createGuardedClient, type GuardedClient } from "../http/guarded-client.ts";
import { createResultJobs, type ResultJobs } from "./jobs.ts";
import { createLocalStorage, type ResultStorage } from "./storage.ts";
import { createResultFiles, type Measure } from "./result-files.ts";
import type { ResultFiles } from "./result.ts";
import { createS3Storage } from "./s3-storage.ts";

/** Options of {@link openResults}. */
export interface OpenResultsOptions {
  readonly pool: Pool;
  /** The connections of the jobs. `pool` by default. */
  readonly jobPool?: Pool;
  readonly settings: Pick<Settings, "dataDir" | "listen" | "publicUrl">;
  readonly config: Pick<Config, "storage">;
  /** Logs a warning for operators, without secrets. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /**
   * Downloads from addresses in vendors' replies. By default a client that reaches public addresses
   * only.
   */
  readonly client?: GuardedClient;
  /** Measures the length of videos and audio. Lengths stay unknown by default. */
  readonly measure?: Measure;
}

/** Result files with their jobs and their store. */
export interface Results extends ResultFiles {
  readonly jobs: ResultJobs;
  /**
   * Sets the gateway's address, at which files are served if the settings have no
   * public one. Returns its argument.
   */
  servedAt<Urls extends { readonly publicUrl: string }>(urls: Urls): Urls;
  /** Ends the jobs and closes the store. */
  stop(): Promise<void>;
}

/**
 * Opens the result files. With a bucket, files from an earlier local folder are served until they
 * expire.
 */
export function openResults(options: OpenResultsOptions): Results {
  const { pool, settings, config, warn, measure, client = createGuardedClient() } = options;
  const { jobPool = pool } = options;
  const folder = join(settings.dataDir, "results");
  const storages = storagesOf(config.storage, folder);
  const spoolFolder = join(folder, "incoming");
  const jobs = createResultJobs({ pool: jobPool, storages, spoolFolder, warn });
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
