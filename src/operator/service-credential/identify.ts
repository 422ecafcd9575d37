/**
 * Identifies services by their credentials. Each request reads the database. A cache, as for API
 * keys, would save nothing that matters: operator RPCs are few and read the database anyway. So a
 * credential that is disabled or deleted is refused in all processes at its next request.
 */
import type { Pool } from "pg";
import { withTimeout } from "../../core/async.ts";
import type { IdentifyService } from "../../core/caller.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { digestBytes, digestSecret, isServiceSecret } from "../../key/secret.ts";

/** Timeout of a look-up, as for API keys. */
const lookUpTimeoutMs = 900;

const statement = {
  name: "service_credential_by_digest",
  text:
    "select name, permissions from service_credential " +
    "where (digest = $1 or (previous_digest = $1 and previous_expire_time > clock_timestamp())) " +
    "and not is_disabled and (expire_time is null or expire_time > clock_timestamp())",
};

interface Row {
  readonly name: string;
  readonly permissions: readonly string[];
}

/** Creates the check. @throws GatewayError SERVICE_UNAVAILABLE if the database does not answer */
export function createIdentifyService(pool: Pick<Pool, "query">): IdentifyService {
  return async (secret) => {
    if (!isServiceSecret(secret)) return undefined;
    const values = [digestBytes(digestSecret(secret))];
    const looking = withTimeout(lookUpTimeoutMs, pool.query<Row>({ ...statement, values }));
    const [row] = (await mapDatabaseLoss(looking)).rows;
    if (row === undefined) return undefined;
    const { name, permissions } = row;
    return { kind: "operator", via: `service ${name}`, permissions: new Set(permissions) };
  };
}
