/** Result files on a separate database and folder. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "pg";
import { createGuardedClient } from "../../../src/http/guarded-client.ts";
import { createResultJobs, type ResultJobs } from "../../../src/result/jobs.ts";
import { createLocalStorage, type ResultStorage } from "../../../src/result/storage.ts";
import { createResultFiles, type ResultFilesOptions } from "../../../src/result/result-files.ts";
import type { ResultFiles } from "../../../src/result/result.ts";
import { createTestDatabase } from "../../support/database.ts";
import { ca } from "../../support/receiver.ts";

/** An account and a task; nothing else knows of them. */
export const about = {
  accountId: "00000000-0000-7000-8000-000000000001",
  taskId: "00000000-0000-7000-8000-000000000002",
};

/** Support of a test. */
export interface TestResults extends ResultFiles {
  readonly pool: Pool;
  readonly folder: string;
  readonly storage: ResultStorage;
  readonly jobs: ResultJobs;
  /** Warnings so far. */
  readonly warnings: readonly string[];
  /** Another keeper on the same database and folder. */
  also(options: Partial<ResultFilesOptions>): ResultFiles;
  /** The jobs of another node. */
  alsoJobs(storages: readonly ResultStorage[]): ResultJobs;
  /** Lets everything that was stored so far expire. */
  expireAll(): Promise<void>;
  /** Returns the numbers of rows. */
  rows(): Promise<{ files: number; blobs: number }>;
  /** The names of files that are kept, of all folders but the one of incoming files. */
  kept(): string[];
  /** The names of files on their way. */
  incoming(): string[];
  close(): Promise<void>;
}

/** Opens one; hosts `localhost` and `127.0.0.1` may be fetched from. */
export async function openTestResults(
  storageOf?: (local: ResultStorage) => ResultStorage,
): Promise<TestResults> {
  const database = await createTestDatabase();
  const pool = new Pool({ connectionString: database.url, max: 8 });
  const folder = mkdtempSync(join(tmpdir(), "uas-results-"));
  const local = createLocalStorage(folder);
  const storage = storageOf?.(local) ?? local;
  const spoolFolder = join(folder, "incoming");
  const warnings: string[] = [];
  const client = createGuardedClient({ allowHosts: ["localhost"], ca: [ca] });
  const base = {
    pool,
    storages: [storage] as const,
    spoolFolder,
    client,
    publicUrl: () => "https://gateway.test",
  };
  const warn = (message: string): void => void warnings.push(message);
  const alsoJobs = (storages: readonly ResultStorage[]) =>
    createResultJobs({ pool, storages, spoolFolder, warn });
  return {
    ...createResultFiles(base),
    pool,
    folder,
    storage,
    jobs: alsoJobs([storage]),
    warnings,
    also: (options) => createResultFiles({ ...base, ...options }),
    alsoJobs,
    async expireAll() {
      await pool.query("update result_file set expire_time = now() - interval '1 second'");
    },
    async rows() {
      const { rows } = await pool.query<{ files: number; blobs: number }>(
        `select (select count(*)::int from result_file) as files,
                (select count(*)::int from result_blob) as blobs`,
      );
      return rows[0] ?? { files: -1, blobs: -1 };
    },
    kept: () =>
      readdirSync(folder)
        .filter((name) => name !== "incoming")
        .flatMap((name) => readdirSync(join(folder, name)))
        .toSorted(),
    incoming: () => (existsSync(spoolFolder) ? readdirSync(spoolFolder) : []),
    async close() {
      await pool.end();
      await database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** All bytes of a stored file; throws if there are none. */
export async function readBack(results: ResultFiles, token: string): Promise<Buffer> {
  const found = await results.find(token);
  if (found === undefined || found.expired) throw new Error(`no file behind ${token}`);
  const pieces: Buffer[] = [];
  const stream = await found.open({ start: 0, end: found.bytes - 1 });
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
