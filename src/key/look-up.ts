/** Reads keys from the database. */
import type { Pool } from "pg";
import { AccountState } from "../../gen/uas/account/v1/account_pb.ts";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { AccountEntity } from "../account/entity.ts";
import { withTimeout } from "../core/async.ts";
import type { KeyCaller, RefusedKey } from "../core/caller.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ratesOf } from "../core/rate-limits.ts";
import type { RowOf } from "../db/row.ts";
import type { ApiKeyEntity } from "./entity.ts";
import { digestBytes } from "./secret.ts";

/** The result of checking a key. */
export type Verdict =
  | {
      readonly kind: "accepted";
      readonly caller: KeyCaller;
      /** Remaining life of the key from the query, above 0; may be `Infinity`. */
      readonly expiresInMs: number;
    }
  | {
      readonly kind: "refused";
      /** Undefined if the key is unknown. */
      readonly key: RefusedKey | undefined;
    };

/** Timeout of a look-up, so that callers get 503 within 1 s if the database does not answer. */
const lookUpTimeoutMs = 900;

/** Time after which a statement's connection is closed. No caller waits for it by then. */
const giveUpMs = 2 * lookUpTimeoutMs;

/** Expiry is checked by the database clock, which all processes share. */
const statement = {
  name: "key_by_digest",
  text:
    "select k.id, k.account_id, k.models, k.state, k.spend_limit, a.discount_bp, a.price_list, " +
    "k.rpm, k.tpm, k.concurrency, a.rpm as account_rpm, a.tpm as account_tpm, " +
    "a.concurrency as account_concurrency, a.limit_wait_ms, " +
    "a.state as account_state, " +
    "extract(epoch from k.expire_time - clock_timestamp())::float8 * 1000 as expires_in_ms " +
    "from api_key k join account a on a.id = k.account_id where k.digest = $1",
};

type KeyRow = RowOf<
  typeof ApiKeyEntity,
  "id" | "account_id" | "models" | "state" | "spend_limit" | "rpm" | "tpm" | "concurrency"
> &
  RowOf<typeof AccountEntity, "discount_bp" | "price_list" | "limit_wait_ms"> & {
    readonly account_state: number;
    readonly account_rpm: number | null;
    readonly account_tpm: number | null;
    readonly account_concurrency: number | null;
    readonly expires_in_ms: number | null;
  };

/**
 * Looks a key up by its digest.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE if the database does not answer in time, which is better
 * than a wrong result
 */
export async function lookUpKey(pool: Pool, digest: string): Promise<Verdict> {
  // One timeout covers waiting for a connection, opening it, and the query; the driver's timeouts
  // would add up.
  const query = { ...statement, values: [digestBytes(digest)], query_timeout: giveUpMs };
  const looking = withTimeout(lookUpTimeoutMs, pool.query<KeyRow>(query));
  return judge((await mapDatabaseLoss(looking)).rows[0]);
}

function judge(row: KeyRow | undefined): Verdict {
  if (row === undefined) return { kind: "refused", key: undefined };
  const reason = refusalOf(row);
  if (reason !== undefined) {
    const key = { kind: "refused", accountId: row.account_id, keyId: row.id, reason } as const;
    return { kind: "refused", key };
  }
  const caller: KeyCaller = {
    kind: "key",
    accountId: row.account_id,
    keyId: row.id,
    models: row.models ? new Set(row.models) : undefined,
    keyLimitNanos: row.spend_limit === null ? undefined : BigInt(row.spend_limit),
    ...ratesOfCaller(row),
    discountBp: row.discount_bp,
    ...(row.price_list !== "" && { priceList: row.price_list }),
    isSuspended: row.account_state !== AccountState.ACTIVE,
  };
  return { kind: "accepted", caller, expiresInMs: row.expires_in_ms ?? Infinity };
}

/**
 * Only the limits of the key and its account: most have none, and then their callers have no such
 * members.
 */
function ratesOfCaller(row: KeyRow): Pick<KeyCaller, "keyRates" | "accountRates" | "limitWaitMs"> {
  const { account_rpm: rpm, account_tpm: tpm, account_concurrency: concurrency } = row;
  const keyRates = ratesOf(row);
  const accountRates = ratesOf({ rpm, tpm, concurrency });
  return {
    ...(keyRates && { keyRates }),
    ...(accountRates && { accountRates }),
    ...(row.limit_wait_ms !== null && { limitWaitMs: row.limit_wait_ms }),
  };
}

function refusalOf({
  state,
  expires_in_ms: expiresInMs,
}: KeyRow): RefusedKey["reason"] | undefined {
  if (state === KeyState.DELETED) return "deleted";
  if (state !== KeyState.ENABLED) return "disabled";
  return expiresInMs !== null && expiresInMs <= 0 ? "expired" : undefined;
}
