/**
 * The data keys of accounts, which encrypt copies of API keys. Each is encrypted with the master
 * key, so a new master key changes one row per account.
 */
import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import type { SealedColumns } from "../core/sealed-columns.ts";
import { createSealing, type Sealing } from "../core/sealing.ts";

/** Replaces an account id in the row that identifies the master key of the database. */
export const gatewayId = "00000000-0000-0000-0000-000000000000";

/** Encryption context of data keys, in addition to the account. */
const context = Buffer.from("data key");

const purpose = "data key";

/** The data keys as they are stored, for a change of the master key. */
export const sealedDataKeys: SealedColumns = {
  table: "data_key",
  key: ["account_id"],
  columns: ["wrapped"],
  account: "account_id",
  purpose,
  context: () => context,
};

const sql = {
  get: `select wrapped from data_key where account_id = $1`,
  add: `insert into data_key (account_id, wrapped) values ($1, $2) on conflict do nothing`,
} as const;

const dataKeyBytes = 32;

/** Options of {@link createDataKeys}. */
interface DataKeysOptions {
  readonly pool: Pool;
  /** Returns the 32-byte master key; called on first use. */
  readonly masterKey: () => Uint8Array;
}

/** The data keys under one master key. */
export interface DataKeys {
  /** Whether the account has a data key, under any master key. */
  exists(accountId: string): Promise<boolean>;
  /**
   * Returns the account's encryption; creates its data key exactly once. Undefined if another
   * master key encrypted it.
   */
  sealingOf(accountId: string): Promise<Sealing | undefined>;
}

/** Opens the data keys. */
export function createDataKeys({ pool, masterKey }: DataKeysOptions): DataKeys {
  let made: Sealing | undefined;
  const wrapping = (): Sealing => (made ??= createSealing(masterKey(), purpose));
  const wrappedOf = async (accountId: string): Promise<Buffer | undefined> => {
    const query = pool.query<{ wrapped: Buffer }>(sql.get, [accountId]);
    return (await mapDatabaseLoss(query)).rows[0]?.wrapped;
  };
  return {
    exists: async (accountId) => (await wrappedOf(accountId)) !== undefined,
    async sealingOf(accountId) {
      for (;;) {
        const wrapped = await wrappedOf(accountId);
        if (wrapped !== undefined) {
          const text = wrapping().open(accountId, context, wrapped);
          if (text === undefined) return undefined;
          return createSealing(Buffer.from(text, "base64"), "key copy");
        }
        const fresh = randomBytes(dataKeyBytes).toString("base64");
        const values = [accountId, wrapping().seal(accountId, context, fresh)];
        await mapDatabaseLoss(pool.query(sql.add, values));
      }
    },
  };
}
