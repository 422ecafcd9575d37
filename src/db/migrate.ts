/** Brings the schema up to date, one process at a time. */
import type { MikroORM } from "@mikro-orm/postgresql";
import type { Client } from "pg";
import type { Log } from "./connect.ts";

/** The lock that keeps two processes from migrating at once: any fixed number. */
const migrationLock = 0x7561_735f;

/**
 * Applies the migrations that are missing. MikroORM's migrator takes no lock of its own: without ours,
 * two nodes that start at once would both apply the same one.
 *
 * @param connection one of its own: the lock lasts as long as it does, also when this process dies.
 * @throws where a newer program has migrated the database already.
 */
export async function migrate(orm: MikroORM, connection: Client, log: Log): Promise<void> {
  await connection.query("select pg_advisory_lock($1)", [migrationLock]);
  try {
    await refuseNewer(orm);
    for (const { name } of await orm.migrator.up()) log.info(`migrated the database: ${name}`);
  } finally {
    await connection.query("select pg_advisory_unlock($1)", [migrationLock]).catch(() => {});
  }
}

/** Writing to a schema one does not know can break the books: better not to start. */
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
