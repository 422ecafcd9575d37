/** Asks the database about a key. */
import type { Pool } from "pg";
import { AccountState } from "../../gen/uas/account/v1/account_pb.ts";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { KeyCaller, RefusedKey } from "../core/caller.ts";
import { databaseUnavailable, isDatabaseLost } from "../core/database-lost.ts";
import type { RowOf } from "../db/row.ts";
import type { AccountEntity } from "../account/entity.ts";
import type { ApiKeyEntity } from "./entity.ts";
import { digestBytes } from "./secret.ts";

/** Why a key is refused. Callers never learn it (R-AUTH-2). */
export type RefusalReason = "unknown" | RefusedKey["reason"];

/** What is known of a presented key. */
export type Verdict =
  | {
      readonly kind: "accepted";
      readonly caller: KeyCaller;
      /** How long from the question on the key is good, in milliseconds, more than 0; may be `Infinity`. */
      readonly expiresInMs: number;
    }
  | {
      readonly kind: "refused";
      /** `undefined`: there is no such key. */
      readonly key: RefusedKey | undefined;
    };

/** How long a look-up may take in all, in milliseconds: without a database the answer is 503 within 1 s. */
const lookUpTimeoutMs = 900;

/** When a statement's connection is given up, in milliseconds; nobody waits for it any more by then. */
const giveUpMs = 2 * lookUpTimeoutMs;

/** Expiry by the database's clock: the one that all nodes share. */
const statement = {
  name: "key_by_digest",
  text:
    "select k.id, k.account_id, k.models, k.state, k.spend_limit, a.discount_bp, " +
    "a.state as account_state, " +
    "extract(epoch from k.expire_time - clock_timestamp())::float8 * 1000 as expires_in_ms " +
    "from api_key k join account a on a.id = k.account_id where k.digest = $1",
};

type KeyRow = RowOf<typeof ApiKeyEntity, "id" | "account_id" | "models" | "state" | "spend_limit"> &
  RowOf<typeof AccountEntity, "discount_bp"> & {
    readonly account_state: number;
    readonly expires_in_ms: number | null;
  };

/**
 * Looks a key up by its digest.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where the database does not answer in time: no verdict is better
 * than a wrong one.
 */
export async function lookUpKey(pool: Pool, digest: string): Promise<Verdict> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  // One limit over waiting for a connection, making it and asking; the driver's own ones would add up.
  // Where this process was held up itself, the answer may be here already: it is read before the immediate.
  const timer = setTimeout(() => setImmediate(reject, databaseUnavailable()), lookUpTimeoutMs);
  try {
    const query = { ...statement, values: [digestBytes(digest)], query_timeout: giveUpMs };
    const { rows } = await Promise.race([pool.query<KeyRow>(query), timeout]);
    return judge(rows[0]);
  } catch (error) {
    throw isDatabaseLost(error) ? databaseUnavailable(error) : error;
  } finally {
    clearTimeout(timer);
  }
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
    discountBp: row.discount_bp,
    isSuspended: row.account_state !== AccountState.ACTIVE,
  };
  return { kind: "accepted", caller, expiresInMs: row.expires_in_ms ?? Infinity };
}

function refusalOf({
  state,
  expires_in_ms: expiresInMs,
}: KeyRow): RefusedKey["reason"] | undefined {
  if (state === KeyState.DELETED) return "deleted";
  if (state !== KeyState.ENABLED) return "disabled";
  return expiresInMs !== null && expiresInMs <= 0 ? "expired" : undefined;
}
