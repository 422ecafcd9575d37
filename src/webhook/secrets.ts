/**
 * The signing secrets of accounts: generated at their first use, stored sealed, rotated without a
 * gap. SQL: the database's clock decides.
 */
import type { Pool } from "pg";
import { webhookRotationMs } from "../core/limits.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { SealedColumns } from "../core/sealed-columns.ts";
import { createSealing, type Sealing } from "../core/sealing.ts";
import type { RowOf } from "../db/row.ts";
import type { WebhookSecretEntity } from "./entity.ts";
import { newSecret, type SigningSecrets } from "./signature.ts";

/**
 * The columns of a secret, with its rotation by the database's clock: whether the previous one is
 * still valid.
 */
export type SecretRow = RowOf<typeof WebhookSecretEntity, "sealed" | "previous" | "is_promoted"> & {
  readonly is_rotating: boolean;
};

/** An account's secrets at this moment. */
export interface AccountSecrets extends SigningSecrets {
  readonly isPromoted: boolean;
  /** Undefined if there is no rotation. */
  readonly rotationEndTime: Date | undefined;
}

/** The secrets of all accounts. */
export interface Secrets {
  /**
   * Reads the secrets; generates one if there is none, exactly once.
   *
   * @throws GatewayError if they cannot be opened
   */
  get(accountId: string): Promise<AccountSecrets>;
  /** Generates a new secret in addition to the current one: RotateSecret of the contract. */
  rotate(accountId: string): Promise<AccountSecrets>;
  /** Makes the new secret the current one: PromoteSecret of the contract. */
  promote(accountId: string, dropOld: boolean): Promise<AccountSecrets>;
  /** Opens a row of another query; undefined if it was sealed with another master key. */
  open(accountId: string, row: SecretRow): SigningSecrets | undefined;
}

/** Whether the previous secret is still valid: a condition on the row `secret`. */
export const isRotatingSql = `(secret.previous is not null
  and secret.rotate_time > now() - interval '${webhookRotationMs} ms')`;

const columns = `sealed, previous, is_promoted, rotate_time, ${isRotatingSql} as is_rotating`;

const sql = {
  get: `select ${columns} from webhook_secret secret where account_id = $1`,
  make: `insert into webhook_secret (account_id, sealed) values ($1, $2) on conflict do nothing`,
  rotate: `update webhook_secret secret set
      previous = case when ${isRotatingSql} and not is_promoted then previous else sealed end,
      sealed = $2, is_promoted = false, rotate_time = now()
    where account_id = $1 returning ${columns}`,
  promote: `update webhook_secret secret set
      is_promoted = true, previous = case when $2 then null else previous end
    where account_id = $1 returning ${columns}`,
} as const;

type StoredRow = SecretRow & RowOf<typeof WebhookSecretEntity, "rotate_time">;

/** The sealing context of secrets, in addition to their account. */
const context = Buffer.from("webhook secret");

const purpose = "webhook";

/** The secrets as they are stored, for a change of the master key. */
export const sealedSecrets: SealedColumns = {
  table: "webhook_secret",
  key: ["account_id"],
  columns: ["sealed", "previous"],
  account: "account_id",
  purpose,
  context: () => context,
};

/** Options of {@link createSecrets}. */
export interface SecretsOptions {
  readonly pool: Pool;
  /** The master key, 32 bytes; read at its first use. */
  readonly masterKey: () => Uint8Array;
  /**
   * Called before a secret is created. Rejects if the master key is not the key of the database. No
   * check by default, for a process that has checked its key.
   */
  readonly requireMasterKey?: () => Promise<void>;
}

/** Creates the store. */
export function createSecrets({
  pool,
  masterKey,
  requireMasterKey = async () => {},
}: SecretsOptions): Secrets {
  let made: Sealing | undefined;
  const sealing = (): Sealing => (made ??= createSealing(masterKey(), purpose));
  const open: Secrets["open"] = (accountId, row) => {
    const { is_rotating: isRotating, is_promoted: isPromoted } = row;
    const newest = sealing().open(accountId, context, row.sealed);
    const old = row.previous && sealing().open(accountId, context, row.previous);
    if (newest === undefined || old === undefined) return undefined;
    if (!isRotating || old === null) return { current: newest, other: undefined };
    return isPromoted ? { current: newest, other: old } : { current: old, other: newest };
  };
  const one = async (text: string, values: readonly unknown[]): Promise<StoredRow | undefined> =>
    (await mapDatabaseLoss(pool.query<StoredRow>(text, [...values]))).rows[0];
  const sealNew = async (accountId: string): Promise<Buffer> => {
    await requireMasterKey();
    return sealing().seal(accountId, context, newSecret());
  };
  const ensure = async (accountId: string): Promise<StoredRow> => {
    for (;;) {
      const row = await one(sql.get, [accountId]);
      if (row !== undefined) return row;
      await one(sql.make, [accountId, await sealNew(accountId)]);
    }
  };
  const read = (accountId: string, row: StoredRow): AccountSecrets => {
    const secrets = open(accountId, row);
    if (secrets === undefined) throw cannotOpen();
    const endMs = row.rotate_time.getTime() + webhookRotationMs;
    return {
      ...secrets,
      isPromoted: row.is_promoted || secrets.other === undefined,
      rotationEndTime: secrets.other === undefined ? undefined : new Date(endMs),
    };
  };
  return {
    open,
    get: async (accountId) => read(accountId, await ensure(accountId)),
    async rotate(accountId) {
      // Opened first: a secret that can no longer be opened is not replaced silently.
      read(accountId, await ensure(accountId));
      const row = await one(sql.rotate, [accountId, await sealNew(accountId)]);
      return read(accountId, row ?? (await ensure(accountId)));
    },
    async promote(accountId, dropOld) {
      await ensure(accountId);
      const row = await one(sql.promote, [accountId, dropOld]);
      return read(accountId, row ?? (await ensure(accountId)));
    },
  };
}

function cannotOpen(): GatewayError {
  return new GatewayError(
    ErrorCode.INTERNAL_ERROR,
    "the account's webhook secret cannot be opened: it was sealed with another master key; the operator must set UAS_MASTER_KEY to the gateway's key",
  );
}
