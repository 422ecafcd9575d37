/** Asks the database about a key. */
import type { Pool } from "pg";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { Caller } from "../caller.ts";
import { databaseUnavailable, isDatabaseLost } from "../database-lost.ts";
import { digestBytes } from "./secret.ts";

/** Why a key is refused. Callers never learn it (R-AUTH-2). */
export type RefusalReason = "unknown" | "disabled" | "deleted";

/** What is known of a presented key. */
export type Verdict =
  | { readonly kind: "accepted"; readonly caller: Extract<Caller, { kind: "key" }> }
  | {
      readonly kind: "refused";
      readonly reason: RefusalReason;
      /** `undefined`: no such key. */
      readonly keyId: string | undefined;
    };

/** How long a look-up may take in all, in milliseconds: without a database the answer is 503 within 1 s. */
const lookUpTimeoutMs = 900;

/** When a statement's connection is given up, in milliseconds; nobody waits for it any more by then. */
const giveUpMs = 2 * lookUpTimeoutMs;

const statement = {
  name: "key_by_digest",
  text: "select id, account_id, models, state from api_key where digest = $1",
};

interface KeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly models: readonly string[] | null;
  readonly state: number;
}

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
  if (row === undefined) return { kind: "refused", reason: "unknown", keyId: undefined };
  const { id: keyId, account_id: accountId, state } = row;
  if (state === KeyState.ENABLED) {
    const models = row.models ? new Set(row.models) : undefined;
    return { kind: "accepted", caller: { kind: "key", accountId, keyId, models } };
  }
  const reason = state === KeyState.DELETED ? "deleted" : "disabled";
  return { kind: "refused", reason, keyId };
}
