/** Opens the database: the ORM over the entities of all rooms, and the plain pool for prepared SQL. */
import { MikroORM, type Options } from "@mikro-orm/postgresql";
import { Migrator } from "@mikro-orm/migrations";
import type { Pool } from "pg";
import { connect, type ConnectOptions, type Log } from "./connect.ts";
import { entities } from "./entities.ts";
import { migrate } from "./migrate.ts";
import { migrations } from "./migrations.ts";
import { answerTimeoutMs, connectTimeoutMs, openPool, preparePool } from "./open-pool.ts";

/** An open database. */
export interface Database {
  /** For everything but the hot path. Fork the entity manager for each piece of work. */
  readonly orm: MikroORM;
  /** For prepared SQL: authentication, reads of the call log. The ledger has connections of its own. */
  readonly pool: Pool;
  /** The address, for connections of one's own (ledger, listener). Contains a password: never log it. */
  readonly url: string;
  /** Closes every connection opened here. */
  close(): Promise<void>;
}

/** How many connections the ORM and the plain pool may each open. */
const poolMax = 8;

const silent: Log = { info: () => {}, warn: () => {} };

/** The ORM's options; the migration tool uses the same. */
export function ormOptions(url: string): Options {
  return {
    clientUrl: url,
    entities: [...entities],
    extensions: [Migrator],
    migrations: {
      migrationsList: [...migrations],
      snapshot: false,
      tableName: "migration",
      silent: true,
    },
    // Functions and triggers are written by hand in the migrations: no drift.
    schemaGenerator: { ignoreRoutines: true, ignoreTriggers: true },
    // Hot data lives in prepared SQL; an entity manager is forked for every piece of work.
    allowGlobalContext: false,
    pool: { min: 0, max: poolMax },
    // The ORM reads host and port of an address, but no socket folder: the driver reads all of it.
    driverOptions: {
      connectionString: url,
      connectionTimeoutMillis: connectTimeoutMs.callers,
      query_timeout: answerTimeoutMs,
      keepAlive: true,
      onPoolCreated: (pool: Pool) => preparePool(pool, url, "callers"),
    },
    forceUtcTimezone: true,
  };
}

/**
 * Opens the database and brings its schema up to date.
 *
 * @param options.log gets a line for every migration, and one where the server has to be waited for.
 * Default: none.
 * @throws where the server cannot be reached or used, or its schema is newer than this program; the
 * message says what to do.
 */
export async function openDatabase(
  url: string,
  options: Partial<ConnectOptions> = {},
): Promise<Database> {
  const log = options.log ?? silent;
  const connection = await connect(url, { ...options, log });
  try {
    const database = await createDatabase(url);
    try {
      await migrate(database.orm, connection, log);
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  } finally {
    await connection.end().catch(() => {});
  }
}

async function createDatabase(url: string): Promise<Database> {
  const orm = await MikroORM.init(ormOptions(url));
  const pool = openPool(url, { max: poolMax, for: "callers" });
  return {
    orm,
    pool,
    url,
    async close() {
      await Promise.allSettled([orm.close(true), pool.end()]);
    },
  };
}
