/** A PostgreSQL of the harness's own, which can be hurt. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { openDatabase } from "../../../src/db/database.ts";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";
import { createDatabase, withDatabase } from "../../support/test-server.ts";

/** Creates databases for rounds. */
export interface ChaosServer {
  readonly adminUrl: string;
  /** A migrated database to copy. */
  readonly template: string;
  close(): Promise<void>;
}

/** One that can be hurt. Whatever it does hits all its databases. */
export interface FragileServer extends ChaosServer {
  /**
   * Kills the backend that runs a batch of the ledger there, hard; PostgreSQL then ends all others
   * and recovers.
   */
  killBackend(database: string): Promise<void>;
  /** Equals `pg_ctl stop -m immediate`; its keeper starts it again. */
  stopNow(): Promise<void>;
}

/** Starts one in `folder`, with the settings of production. */
export async function startFragile(folder: string): Promise<FragileServer> {
  mkdirSync(folder, { recursive: true });
  const log = { info() {}, warn() {} };
  const embedded = await startEmbedded({ dataDir: folder, log });
  const mark = join(folder, "postgres/postmaster.pid");
  const template = await makeTemplate(embedded.url);
  return {
    adminUrl: embedded.url,
    template,
    async killBackend(database) {
      process.kill(await batchBackend(embedded.url, database), "SIGKILL");
    },
    stopNow: () => stopNow(mark),
    close: () => embedded.stop(),
  };
}

/**
 * Connects, and returns whether the server has ended that connection since: a crash ends all. Close
 * it.
 */
export async function watchCrash(
  url: string,
): Promise<{ hasCrashed(): boolean; close(): Promise<void> }> {
  const client = new Client({ connectionString: url });
  let hasEnded = false;
  client.on("error", () => {});
  client.once("end", () => (hasEnded = true));
  await client.connect();
  return { hasCrashed: () => hasEnded, close: () => client.end() };
}

/** Waits until there is a server to stop, because its keeper may be starting it. */
async function stopNow(mark: string): Promise<void> {
  for (;;) {
    const [pid] = existsSync(mark) ? readFileSync(mark, "utf8").split("\n") : [];
    if (Number(pid) > 0) return void process.kill(Number(pid), "SIGQUIT");
    await sleep(5);
  }
}

/** Waits until a backend of the ledger is working. */
async function batchBackend(adminUrl: string, database: string): Promise<number> {
  for (;;) {
    const pid = await findBackend(adminUrl, database).catch(() => undefined);
    if (pid !== undefined) return pid;
    await sleep(5);
  }
}

/** Rejects while the server recovers. */
async function findBackend(adminUrl: string, database: string): Promise<number | undefined> {
  const client = new Client({ connectionString: adminUrl });
  client.on("error", () => {});
  try {
    await client.connect();
    for (let looks = 0; looks < 100; looks++) {
      const { rows } = await client.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = $1 and application_name = 'uas-ledger'
           and state = 'active' and query like '%ledger_apply%' limit 1`,
        [database],
      );
      if (rows[0]) return rows[0].pid;
      await sleep(1);
    }
    return undefined;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Makes a migrated database to copy. */
export async function makeTemplate(adminUrl: string): Promise<string> {
  const name = await createDatabase(adminUrl, "template1");
  // A template must have no connections while it is copied.
  await (await openDatabase(withDatabase(adminUrl, name))).close();
  return name;
}

/** Runs a statement on a new connection; again if the server is recovering. */
export async function run(url: string, sql: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query(sql);
      return;
    } catch (error) {
      if (tries === 100) throw error;
      await sleep(100);
    } finally {
      await client.end().catch(() => {});
    }
  }
}
