/** Wrong passwords, authenticator codes and links: so many, then nobody is asked for a while. */
import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { failuresMax } from "../../config/sign-in-limits.ts";
import { answering } from "../../database-lost.ts";
import { newId } from "../../uuid.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import { addressGroup, duration } from "../code/limits.ts";

/** What a failure is counted by. */
export interface Attempt {
  /** Whom it is about: a user's id, or what was typed in for one. */
  readonly subject: string;
  readonly ipAddress: string;
}

/** The failures of all nodes. */
export interface Failures {
  /** @throws GatewayError RATE_LIMIT_EXCEEDED where there were too many */
  admit(attempt: Attempt): Promise<void>;
  note(attempt: Attempt): Promise<void>;
}

const { subject, address } = failuresMax;

/** The n-th newest failure of a window: as long as it is there, nobody is asked. */
const windowSql = (condition: string, { max, withinMs }: typeof subject | typeof address): string =>
  `(select extract(epoch from create_time + interval '${withinMs} ms' - now())::float8 as wait
    from sign_in_failure where ${condition} and create_time > now() - interval '${withinMs} ms'
    order by create_time desc offset ${max - 1} limit 1)`;

const sql = {
  wait: `select max(wait) as wait from (${windowSql("subject = $1", subject)}
    union all ${windowSql("ip_address = $2", address)}) w`,
  note: `insert into sign_in_failure (id, subject, ip_address) values ($1, $2, $3)`,
} as const;

/** Makes the counter. */
export function createFailures(pool: Pool): Failures {
  return {
    async admit(attempt) {
      const query = pool.query<{ wait: number | null }>(sql.wait, keysOf(attempt));
      const wait = (await answering(query)).rows[0]?.wait ?? null;
      if (wait === null) return;
      const retryAfterSeconds = Math.max(1, Math.ceil(wait));
      const text = `too many wrong attempts: try again in ${duration(retryAfterSeconds)}`;
      throw new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, text, { retryAfterSeconds });
    },
    async note(attempt) {
      await answering(pool.query(sql.note, [newId(), ...keysOf(attempt)]));
    },
  };
}

/** Of what somebody typed in only a hash: it may be anything. */
function keysOf({ subject: about, ipAddress }: Attempt): [string, string] {
  const digest = createHash("sha256").update(about).digest("base64url");
  return [digest, addressGroup(ipAddress)];
}
