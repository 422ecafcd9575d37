/** Opens the database: the ORM over the entities of all rooms, and the plain pool for prepared SQL. */
import { MikroORM, type Options } from "@mikro-orm/postgresql";
import { Migrator } from "@mikro-orm/migrations";
import { Pool } from "pg";
import { entities } from "./entities.ts";
import { migrations } from "./migrations.ts";

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

/** How long to wait for a connection, in milliseconds: short, so that a lost database is a 503 at once. */
const connectTimeoutMs = 900;

/** The lock that keeps two processes from migrating at once: any fixed number. */
const migrationLock = 0x7561735f;

/** The ORM's options; the migration tool uses the same. */
export function ormOptions(url: string): Options {
  return {
    clientUrl: url,
    entities: [...entities],
    discovery: { warnWhenNoEntities: false },
    extensions: [Migrator],
    migrations: { migrationsList: [...migrations], snapshot: false, tableName: "migration" },
    // Functions and triggers are written by hand in the migrations: no drift.
    schemaGenerator: { ignoreRoutines: true, ignoreTriggers: true },
    // Hot data lives in prepared SQL; an entity manager is forked for every piece of work.
    allowGlobalContext: false,
    pool: { min: 0, max: poolMax },
    // The ORM reads host and port of an address, but no socket folder: the driver reads all of it.
    driverOptions: { connectionString: url, connectionTimeoutMillis: connectTimeoutMs },
    forceUtcTimezone: true,
  };
}

/**
 * Opens the database and brings its schema up to date.
 *
 * @throws where the server cannot be reached, or its schema is newer than this program.
 */
export async function openDatabase(url: string): Promise<Database> {
  const orm = await MikroORM.init(ormOptions(url));
  const pool = new Pool({
    connectionString: url,
    max: poolMax,
    connectionTimeoutMillis: connectTimeoutMs,
  });
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on("error", () => {});
  const close = async (): Promise<void> => {
    await Promise.allSettled([orm.close(true), pool.end()]);
  };
  try {
    await migrate(orm, pool);
  } catch (error) {
    await close();
    throw error;
  }
  return { orm, pool, url, close };
}

/** MikroORM's migrator takes no lock of its own: without this, two starting nodes apply one twice. */
async function migrate(orm: MikroORM, pool: Pool): Promise<void> {
  const lock = await pool.connect();
  try {
    await lock.query("select pg_advisory_lock($1)", [migrationLock]);
    await orm.migrator.up();
  } finally {
    await lock.query("select pg_advisory_unlock($1)", [migrationLock]).catch(() => {});
    lock.release();
  }
}
