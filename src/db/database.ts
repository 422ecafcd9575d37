/**
 * Opens the database and brings its schema up to date: the ORM over the entities of all rooms, and
 * the plain pool for prepared SQL.
 */
import { MikroORM, type Options } from "@mikro-orm/postgresql";
import type { Pool } from "pg";
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
import { migrate } from "./migrate.ts";
import { migrations } from "./migrations.ts";
import { Outage } from "./outage.ts";
import { connectionSettings, openPool, preparePool } from "./pool/open-pool.ts";
import { type DatabaseAddress, type DatabaseServer, toServer } from "./pool/server.ts";
import { type Log, type OpenOptions, waitMsDefault, connect } from "./first-connection.ts";

/** An open database. */
export interface Database {
  /** For everything but frequent statements. Fork the entity manager for each unit of work. */
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
  /** Whether the database can be reached. */
  readonly outage: Outage;
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

/** The ORM's options. */
export function ormOptions(address: DatabaseAddress): Options {
  const server = toServer(address);
  return {
    clientUrl: server.url,
    entities: [...entities],
    // Functions, triggers, views and the table of migrations are written by hand, so there is no
    // schema drift.
    schemaGenerator: {
      ignoreRoutines: true,
      ignoreTriggers: true,
      skipViews: [/./],
      skipTables: ["migration"],
    },
    // Frequent statements are prepared SQL; an entity manager is forked for every unit of work.
    allowGlobalContext: false,
    pool: { min: 0, max: poolMax },
    // The ORM reads host and port of one address, and no socket folder.
    driverOptions: {
      Client: DatabaseClient,
      ...connectionSettings(server, "callers"),
      onPoolCreated: (pool: Pool) => preparePool(pool, server, "callers"),
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
    const database = await createDatabase(server, log);
    try {
      await migrate(migrations, { connection, address: server, log });
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

async function createDatabase(server: DatabaseServer, log: Log): Promise<Database> {
  const orm = await MikroORM.init(ormOptions(server));
  const pool = openPool(server, { max: poolMax, for: "callers" });
  const taskPool = openPool(server, { max: poolMax, for: "callers" });
  const jobPool = openPool(server, { max: jobPoolMax, for: "jobs" });
  // Opened during an outage only. Other pools may be occupied without one.
  const askPool = openPool(server, { max: 1, for: "callers" });
  const outage = new Outage({ name: server.name, log, ask: () => askPool.query("select 1") });
  return {
    orm,
    pool,
    taskPool,
    jobPool,
    url: server,
    outage,
    async close() {
      await outage.close();
      await askPool.end();
      await Promise.allSettled([orm.close(true), pool.end(), taskPool.end(), jobPool.end()]);
    },
  };
}

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
