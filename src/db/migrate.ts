/** Brings the schema of a database up to date, and refuses one that this program cannot use. */
import { createHash } from "node:crypto";
import type { Client } from "pg";
import { codeOf, type Log } from "./first-connection.ts";
import { connectionSettings } from "./pool/open-pool.ts";
import { type DatabaseAddress, toServer } from "./pool/server.ts";

/** A change of the schema. Once released, it never changes. */
export interface Migration {
  /** `NNNN-<words>`; migrations are applied in this order. */
  readonly name: string;
  /**
   * The oldest migration whose program can use the schema after this one. A program of the previous
   * release must be able to, unless that release has stopped using what this migration removes.
   */
  readonly compatibleFrom: string;
  /** Reads its texts, of one or several statements each. They run in one transaction. */
  readonly statements: () => readonly string[];
}

/** Options of {@link migrate}. */
export interface MigrateOptions {
  /**
   * A connection that nothing else uses: it keeps the lock, which ends with it if this process
   * dies.
   */
  readonly connection: Client;
  /** The address of the connection. */
  readonly address: DatabaseAddress;
  readonly log: Log;
  /**
   * Maximum wait for another process that migrates. Default an hour, since rewriting a large table
   * takes long.
   */
  readonly waitMs?: number;
}

const waitMsDefault = 60 * 60 * 1_000;

/** The advisory lock that keeps two processes from migrating at once: any fixed number. */
export const migrationLock = 0x7561_735f;

/** The SQLSTATE of a lock that was not free in time. */
const lockNotAvailable = "55P03";

/** The SQLSTATE of a table that does not exist. */
const undefinedTable = "42P01";

const createTable = `create table if not exists migration (
  name text primary key, hash text not null, compatible_from text not null,
  executed_at timestamptz not null default now())`;

/**
 * Applies the missing migrations, each in one transaction with its record.
 *
 * @param migrations all of this program, oldest first
 * @throws if this program cannot use the schema, if another process migrates it for too long, or if
 * a migration fails
 */
export async function migrate(
  migrations: readonly Migration[],
  { connection, address, log, waitMs = waitMsDefault }: MigrateOptions,
): Promise<void> {
  await lock(connection, waitMs);
  try {
    const applied = await readApplied(connection);
    refuseForeign(migrations, applied, log);
    const missing = migrations.filter(({ name }) => !applied.some((row) => row.name === name));
    if (missing.length === 0) return;
    await connection.query(connectionSettings(toServer(address), "jobs").sessionSettings ?? "");
    await connection.query(createTable);
    for (const migration of missing) {
      await apply(connection, migration);
      log.info(`migrated the database: ${migration.name}`);
    }
  } finally {
    await connection.query("select pg_advisory_unlock($1)", [migrationLock]).catch(() => {});
  }
}

/** The SHA-256 of the texts of a migration, in hexadecimal. */
export function hashOf({ statements }: Migration): string {
  return createHash("sha256").update(statements().join("\0")).digest("hex");
}

async function lock(connection: Client, waitMs: number): Promise<void> {
  await connection.query(`set lock_timeout = ${waitMs}`);
  await connection.query("select pg_advisory_lock($1)", [migrationLock]).catch((cause: unknown) => {
    if (codeOf(cause) !== lockNotAvailable) throw cause;
    const text = `Another process has been migrating the database for ${Math.ceil(waitMs / 60_000)} minutes: read its log, and start again when it is done.`;
    throw new Error(text, { cause });
  });
}

/** A migration as its record describes it. Versions before 0.2.0 recorded the name only. */
interface Applied {
  readonly name: string;
  readonly hash?: string;
  readonly compatible_from?: string;
}

async function readApplied(connection: Client): Promise<readonly Applied[]> {
  try {
    return (await connection.query<Applied>("select * from migration order by name")).rows;
  } catch (error) {
    if (codeOf(error) === undefinedTable) return [];
    throw error;
  }
}

async function apply(connection: Client, migration: Migration): Promise<void> {
  await connection.query("begin");
  try {
    for (const text of migration.statements()) await connection.query(text);
    await connection.query(
      "insert into migration (name, hash, compatible_from) values ($1, $2, $3)",
      [migration.name, hashOf(migration), migration.compatibleFrom],
    );
    await connection.query("commit");
  } catch (error) {
    await connection.query("rollback").catch(() => {});
    throw error;
  }
}

/**
 * Writing to an unknown schema can make the ledger inconsistent, so such a database is not used at
 * all.
 */
function refuseForeign(
  migrations: readonly Migration[],
  applied: readonly Applied[],
  log: Log,
): void {
  const known = new Map(migrations.map((migration) => [migration.name, migration]));
  for (const { name, hash, compatible_from } of applied) {
    if (hash === undefined || compatible_from === undefined) throw new Error(beforeReleaseText);
    const migration = known.get(name);
    if (migration !== undefined) {
      if (hash !== hashOf(migration)) throw new Error(changedText(name));
    } else if (known.has(compatible_from)) {
      log.info(`a newer version migrated the database (${name}); this version can use it`);
    } else {
      throw new Error(
        `The database was migrated by a newer version of this program (${name} is unknown to this version), and this version cannot use it. Start the newer version, or restore a backup made before.`,
      );
    }
  }
}

const whatToDo =
  "Start the version that created it, or give this version an empty database (without DATABASE_URL: another UAS_DATA_DIR). See docs/upgrade.md.";

const beforeReleaseText = `The database was created by a version before 0.2.0, whose schema was not final: this version can neither use nor upgrade it. ${whatToDo}`;

function changedText(name: string): string {
  return `The database was created by a version that was never released: its migration ${name} is not the one of this version, which can neither use nor upgrade it. ${whatToDo}`;
}
