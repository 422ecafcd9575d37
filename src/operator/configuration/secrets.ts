/**
 * Secrets of the configuration that operators enter instead of a variable or a file. They are
 * encrypted with the master key and never returned.
 */
import type { Pool } from "pg";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import type { SealedColumns } from "../../core/sealed-columns.ts";
import { createSealing } from "../../core/sealing.ts";
import type { Queryable } from "../../db/pool/queryable.ts";

/** A stored secret, without its value. */
export interface StoredSecret {
  readonly name: string;
  readonly author: string;
  readonly update_time: Date;
}

const purpose = "config";

const context = Buffer.from("secret");

/** The secrets as they are stored, for a change of the master key. */
export const sealedConfigSecrets: SealedColumns = {
  table: "config_secret",
  key: ["name"],
  columns: ["sealed"],
  account: "name",
  purpose,
  context: () => context,
};

/**
 * Reads all secrets by name.
 *
 * @param masterKey called only if there is one
 * @throws Error if one is sealed with another master key
 */
export async function readSecrets(
  pool: Queryable,
  masterKey: () => Uint8Array,
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ name: string; sealed: Buffer }>(
    "select name, sealed from config_secret",
    [],
  );
  if (rows.length === 0) return new Map();
  const sealing = createSealing(masterKey(), purpose);
  return new Map(
    rows.map(({ name, sealed }) => {
      const value = sealing.open(name, context, sealed);
      if (value === undefined) throw unreadable(name);
      return [name, value];
    }),
  );
}

function unreadable(name: string): Error {
  return new Error(
    `the secret ${name} is encrypted with another master key: set UAS_MASTER_KEY to that one, or set the secret again`,
  );
}

/** Encrypts the value of a secret. */
export function sealSecret(masterKey: Uint8Array, name: string, value: string): Buffer {
  return createSealing(masterKey, purpose).seal(name, context, value);
}

/** Lists the secrets by name, without their values. @param after only names after this one */
export async function listSecrets(
  pool: Pool,
  { after = "", limit }: { readonly after?: string | undefined; readonly limit: number },
): Promise<readonly StoredSecret[]> {
  const { rows } = await mapDatabaseLoss(
    pool.query<StoredSecret>(
      `select name, author, update_time from config_secret where name > $1
         order by name limit $2`,
      [after, limit],
    ),
  );
  return rows;
}
