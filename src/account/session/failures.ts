/** Wrong passwords and authenticator codes: so many, then nobody is asked for a while. SQL: counted under advisory locks. */
import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { failuresMax } from "../../config/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { transact } from "../../db/transaction.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { newId } from "../../core/uuid.ts";
import { addressGroup, duration } from "../code/limits.ts";

/** The keys that an attempt is counted by. */
export interface Attempt {
  /** A user id, or the text typed in its place. */
  readonly subject: string;
  readonly ipAddress: string;
}

/** The attempts of all processes. */
export interface Failures {
  /**
   * Counts an attempt as failed before it is checked, so that concurrent attempts cannot escape the count.
   *
   * @returns takes the failure back after a successful attempt
   * @throws GatewayError RATE_LIMIT_EXCEEDED after too many failures
   */
  begin(attempt: Attempt): Promise<() => Promise<void>>;
}

const { subject, address } = failuresMax;

/** The n-th newest failure of a window. While it exists, attempts are refused. */
const windowSql = (condition: string, { max, withinMs }: typeof subject | typeof address): string =>
  `(select extract(epoch from create_time + interval '${withinMs} ms' - now())::float8 as wait
    from sign_in_failure where ${condition} and create_time > now() - interval '${withinMs} ms'
    order by create_time desc offset ${max - 1} limit 1)`;

const sql = {
  // Locks are taken in one order, so that no deadlock can occur.
  lock: `select pg_advisory_xact_lock(hashtext('uas sign-in failure'), key)
    from (select hashtext(text) as key from unnest($1::text[]) text order by 1) keys`,
  wait: `select max(wait) as wait from (${windowSql("subject = $1", subject)}
    union all ${windowSql("ip_address = $2", address)}) w`,
  add: `insert into sign_in_failure (id, subject, ip_address) values ($1, $2, $3)`,
  forgive: `delete from sign_in_failure where id = $1`,
} as const;

/** Creates the counter. */
export function createFailures(pool: Pool): Failures {
  return {
    async begin(attempt) {
      const keys = keysOf(attempt);
      const id = newId();
      await transact(pool, async (client) => {
        await client.query(sql.lock, [keys]);
        const { rows } = await client.query<{ wait: number | null }>(sql.wait, keys);
        const wait = rows[0]?.wait ?? null;
        if (wait !== null) throw tooMany(wait);
        await client.query(sql.add, [id, ...keys]);
      });
      return async () => void (await mapDatabaseLoss(pool.query(sql.forgive, [id])));
    },
  };
}

function tooMany(waitSeconds: number): GatewayError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitSeconds));
  const text = `too many wrong attempts: try again in ${duration(retryAfterSeconds)}`;
  return new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, text, { retryAfterSeconds });
}

/** Texts that users typed are stored as hashes only, since they may be anything. */
function keysOf({ subject: about, ipAddress }: Attempt): [string, string] {
  const digest = createHash("sha256").update(about).digest("base64url");
  return [digest, addressGroup(ipAddress)];
}
