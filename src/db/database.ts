/**
 * Opens the database and brings its schema up to date: the ORM over the entities of all rooms, and
 * the plain pool for prepared SQL.
 */
import type { MigrationObject } from "@mikro-orm/core";
import { Migrator } from "@mikro-orm/migrations";
import { MikroORM, type Options } from "@mikro-orm/postgresql";
import type { Client, Pool } from "pg";
import { accountEntities } from "../account/entity.ts";
import { alertEntities } from "../alert/entity.ts";
import { callLogEntities } from "../billing/calls/entity.ts";
import { billingEntities } from "../billing/entity.ts";
import { isDatabaseLost } from "../core/database-lost.ts";
import { callEntities } from "../calls/entity.ts";
import { limitEntities } from "../limits/entity.ts";
import { responseEntities } from "../responses/stored/entity.ts";
import { keyEntities } from "../key/entity.ts";
import { nativeEntities } from "../native/entity.ts";
import { operatorEntities } from "../operator/entity.ts";
import { resultEntities } from "../result/entity.ts";
import { taskEntities } from "../task/entity.ts";
import { webhookEntities } from "../webhook/entity.ts";
import { DatabaseClient } from "./pool/client.ts";
import { Baseline0001 } from "./migration/0001-baseline.ts";
import { connectionSettings, openPool, type PoolUsers, preparePool } from "./pool/open-pool.ts";
import { type DatabaseAddress, type DatabaseServer, toServer } from "./pool/server.ts";
import { type Log, type OpenOptions, waitMsDefault, connect, codeOf } from "./first-connection.ts";

/** An open database. */
export interface Database {
  /** For everything but the hot path. Fork the entity manager for each piece of work. */
  readonly orm: MikroORM;
  /** For prepared SQL of keys, accounts and the call log. The ledger has separate connections. */
  readonly pool: Pool;
  /**
   * For prepared SQL of tasks, of native jobs, and of data that calls store: responses, files,
   * webhooks. A statement that waits for a lock on these tables does not occupy a connection of
   * {@link pool}.
   */
  readonly taskPool: Pool;
  /** For background jobs, whose statements may take long. */
  readonly jobPool: Pool;
  /**
   * The address, for separate connections (ledger, listener). Contains a password: never log it.
   */
  readonly url: DatabaseAddress;
  /** Closes every connection opened here. */
  close(): Promise<void>;
}

/** Maximum number of connections of the ORM, and of each pool of callers. */
const poolMax = 6;

/**
 * Maximum number of connections of background jobs: an audit uses two for minutes, and recovery
 * must not wait for it.
 */
const jobPoolMax = 3;

const silent: Log = { info: () => {}, warn: () => {} };

/**
 * The ORM's options; the migration tool uses the same.
 *
 * @param users the users whose time limits its statements have
 */
export function ormOptions(address: DatabaseAddress, users: PoolUsers = "callers"): Options {
  const server = toServer(address);
  return {
    clientUrl: server.url,
    entities: [...entities],
    extensions: [Migrator],
    migrations: {
      migrationsList: [...migrations],
      snapshot: false,
      tableName: "migration",
      silent: true,
    },
    // Functions, triggers and views are written by hand in the migrations: no drift.
    schemaGenerator: { ignoreRoutines: true, ignoreTriggers: true, skipViews: [/./] },
    // Frequent statements are prepared SQL; an entity manager is forked for every unit of work.
    allowGlobalContext: false,
    pool: { min: 0, max: poolMax },
    // The ORM reads host and port of one address, and no socket folder.
    driverOptions: {
      Client: DatabaseClient,
      ...connectionSettings(server, users),
      onPoolCreated: (pool: Pool) => preparePool(pool, server, users),
    },
    forceUtcTimezone: true,
  };
}

/**
 * Opens the database and brings its schema up to date.
 *
 * @param options.log receives a line for every migration, and one if the server does not answer at
 * once. None by default
 * @throws if the server cannot be reached or used, or its schema is newer than this program; the
 * message says what to do
 */
export async function openDatabase(
  url: DatabaseAddress,
  options: Partial<OpenOptions> = {},
): Promise<Database> {
  const log = options.log ?? silent;
  const server = toServer(url);
  const deadline = Date.now() + (options.waitMs ?? waitMsDefault);
  for (;;) {
    const connection = await connect(server, { log, deadline });
    const database = await createDatabase(server);
    try {
      await migrate(database.orm, { connection, address: server, log });
      return database;
    } catch (error) {
      await database.close();
      // A server that has just started, or shares a busy machine, can take longer than callers wait
      // for a connection.
      if (!isDatabaseLost(error) || Date.now() > deadline) throw error;
      log.warn(`the database at ${server.name} answers slowly: trying again`);
    } finally {
      await connection.end().catch(() => {});
    }
  }
}

async function createDatabase(server: DatabaseServer): Promise<Database> {
  const orm = await MikroORM.init(ormOptions(server));
  const pool = openPool(server, { max: poolMax, for: "callers" });
  const taskPool = openPool(server, { max: poolMax, for: "callers" });
  const jobPool = openPool(server, { max: jobPoolMax, for: "jobs" });
  return {
    orm,
    pool,
    taskPool,
    jobPool,
    url: server,
    async close() {
      await Promise.allSettled([orm.close(true), pool.end(), taskPool.end(), jobPool.end()]);
    },
  };
}

/** The lock that keeps two processes from migrating at once: any fixed number. */
export const migrationLock = 0x7561_735f;

/**
 * Maximum wait for another process that migrates: a migration that rewrites a large table takes
 * long.
 */
const migrationWaitMs = 60 * 60 * 1_000;

/** The SQLSTATE of a lock that was not free in time. */
const lockNotAvailable = "55P03";

interface MigrateOptions {
  /** A separate connection: the lock lasts as long as it does, also if this process dies. */
  readonly connection: Client;
  /** The address of {@link MigrateOptions.connection}. */
  readonly address: DatabaseAddress;
  readonly log: Log;
  /** Maximum wait for another process that migrates. Default one hour. */
  readonly waitMs?: number;
}

/**
 * Applies the missing migrations. MikroORM's migrator takes no lock: without ours, two nodes that
 * start at once would both apply the same migration.
 *
 * @throws if a newer program has migrated the database already, or another process migrates it for
 * too long
 */
export async function migrate(
  orm: MikroORM,
  { connection, address, log, waitMs = migrationWaitMs }: MigrateOptions,
): Promise<void> {
  await connection.query(`set lock_timeout = ${waitMs}`);
  await connection.query("select pg_advisory_lock($1)", [migrationLock]).catch((cause: unknown) => {
    if (codeOf(cause) !== lockNotAvailable) throw cause;
    const text = `Another process has been migrating the database for ${Math.ceil(waitMs / 60_000)} minutes: read its log, and start again when it is done.`;
    throw new Error(text, { cause });
  });
  try {
    await refuseNewer(orm);
    for (const { name } of await applyMissing(orm, address))
      log.info(`migrated the database: ${name}`);
  } finally {
    await connection.query("select pg_advisory_unlock($1)", [migrationLock]).catch(() => {});
  }
}

/**
 * Applies the missing migrations on separate connections: a statement of a migration may take as
 * long as one of a job.
 */
async function applyMissing(
  orm: MikroORM,
  address: DatabaseAddress,
): Promise<readonly { readonly name: string }[]> {
  if ((await orm.migrator.getPending()).length === 0) return [];
  const own = await MikroORM.init(ormOptions(address, "jobs"));
  try {
    return await own.migrator.up();
  } finally {
    await own.close(true);
  }
}

/** Writing to an unknown schema can corrupt the ledger, so the process does not start. */
async function refuseNewer(orm: MikroORM): Promise<void> {
  const known = new Set(orm.config.get("migrations").migrationsList?.map(nameOf));
  const executed = await orm.migrator.getExecuted();
  const unknown = executed.find(({ name }) => !known.has(name));
  if (!unknown) return;
  throw new Error(
    `The database was migrated by a newer version of this program (${unknown.name} is not known here). Start that version, or restore a backup made before.`,
  );
}

function nameOf(migration: { name: string } | (new (...args: never[]) => unknown)): string {
  return migration.name;
}

/**
 * The migrations, oldest first. A new one is a file in migration/ and a line here; released ones
 * never change.
 */
export const migrations: readonly MigrationObject[] = [
  { name: "0001-baseline", class: Baseline0001 },
];

/** The tables of all rooms. A room adds its list here. */
export const entities = [
  ...accountEntities,
  ...keyEntities,
  ...billingEntities,
  ...callLogEntities,
  ...callEntities,
  ...responseEntities,
  ...limitEntities,
  ...taskEntities,
  ...webhookEntities,
  ...alertEntities,
  ...resultEntities,
  ...operatorEntities,
  ...nativeEntities,
] as const;
