/** Facts about the database of an installation, read without changing it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import type { Settings } from "../config/config.ts";
import { decodeMasterKey } from "../config/master-key.ts";
import { createSealing } from "../core/sealing.ts";
import { openEmbedded } from "../db/embedded/embedded.ts";
import { connect } from "../db/first-connection.ts";
import { migrations } from "../db/migrations.ts";
import { toServer } from "../db/pool/server.ts";
import { gatewayId, sealedDataKeys } from "../key/data-keys.ts";

/** Facts about a database. */
export interface DatabaseFacts {
  /** Such as `17.2`. */
  readonly version: string;
  readonly maxConnections: number;
  /** Whether it accepts no writes, such as a standby. */
  readonly isReadOnly: boolean;
  /** Milliseconds by which the clock of this machine is ahead of the database's. */
  readonly aheadMs: number;
  /** Migrations of this version that the database lacks. */
  readonly pending: readonly string[];
  /** Migrations that this version does not know. */
  readonly unknown: readonly string[];
  /** Whether the master key opens the secrets. Undefined if there is no key or no secret yet. */
  readonly isKeyRight: boolean | undefined;
}

const quiet = { info: () => {}, warn: () => {} };

/** Reads the facts. @throws if the database cannot be used; the message says what to do */
export async function inspectDatabase(settings: Settings): Promise<DatabaseFacts> {
  const { databaseUrl, dataDir } = settings;
  const embedded =
    databaseUrl === undefined ? await openEmbedded({ dataDir, log: quiet }) : undefined;
  try {
    const server = toServer(databaseUrl ?? embedded?.url ?? "");
    const client = await connect(server, { log: quiet, deadline: Date.now() });
    try {
      return { ...(await readServer(client)), ...(await readSchema(client, settings)) };
    } finally {
      await client.end();
    }
  } finally {
    await embedded?.stop();
  }
}

async function readServer(client: Client) {
  const startMs = Date.now();
  const { rows } = await client.query<{ version: string; most: string; only: string; ms: string }>(
    `select current_setting('server_version') as version,
      current_setting('max_connections') as most,
      current_setting('transaction_read_only') as only,
      (extract(epoch from clock_timestamp()) * 1000)::bigint::text as ms`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error("the database returned no settings");
  return {
    version: row.version.replace(/ .*/, ""),
    maxConnections: Number(row.most),
    isReadOnly: row.only === "on",
    aheadMs: Math.round((startMs + Date.now()) / 2 - Number(row.ms)),
  };
}

async function readSchema(client: Client, settings: Settings) {
  const { rows: found } = await client.query<{ name: string | null }>(
    "select to_regclass('migration')::text as name",
  );
  if (found[0]?.name === null) {
    return { pending: migrations.map(({ name }) => name), unknown: [], isKeyRight: undefined };
  }
  const { rows } = await client.query<{ name: string }>("select name from migration order by name");
  const applied = new Set(rows.map(({ name }) => name));
  const known = new Set(migrations.map(({ name }) => name));
  return {
    pending: [...known].filter((name) => !applied.has(name)),
    unknown: [...applied].filter((name) => !known.has(name)),
    isKeyRight: await readKey(client, settings),
  };
}

async function readKey(client: Client, settings: Settings): Promise<boolean | undefined> {
  const key = settings.masterKey ?? keyOfFolder(settings.dataDir);
  const { rows } = await client.query<{ wrapped: Buffer }>(
    "select wrapped from data_key where account_id = $1",
    [gatewayId],
  );
  const [row] = rows;
  if (key === undefined || row === undefined) return undefined;
  const { purpose, context } = sealedDataKeys;
  return createSealing(key, purpose).open(gatewayId, context({}), row.wrapped) !== undefined;
}

/** The key of the data folder, which is not created here. */
function keyOfFolder(dataDir: string): Buffer | undefined {
  try {
    return decodeMasterKey(readFileSync(join(dataDir, "master.key"), "utf8").trim());
  } catch {
    return undefined;
  }
}
