/**
 * Checks whether a key is still usable, for links that contain no key but were created with one.
 */
import type { Pool } from "pg";
import { AccountState } from "../../gen/uas/account/v1/account_pb.ts";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { KeyRef } from "../core/caller.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";

/**
 * Whether a key is enabled and not expired, and its account is active. Rejects with GatewayError
 * SERVICE_UNAVAILABLE if the database is unreachable.
 */
export type IsKeyUsable = (key: KeyRef) => Promise<boolean>;

const text = `select 1 from api_key k join account a on a.id = k.account_id
  where k.id = $1 and k.account_id = $2 and k.state = ${KeyState.ENABLED}
    and (k.expire_time is null or k.expire_time > now()) and a.state = ${AccountState.ACTIVE}`;

/**
 * Creates the check. It reads the database each time: such links are few, and must end with their
 * key.
 */
export function createKeyCheck(pool: Pool): IsKeyUsable {
  return async ({ accountId, keyId }) =>
    (await mapDatabaseLoss(pool.query(text, [keyId, accountId]))).rowCount === 1;
}
