/**
 * Limits the objects that accounts store at vendors for free: files use the operator's quota at a
 * vendor, and cost their customer nothing. An account needs money, and has a maximum number of
 * objects and bytes a day (R-MON-16).
 */
import type { Pool } from "pg";
import type { UploadLimits } from "../config/config.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";

/** One upload request. */
export interface Upload {
  readonly accountId: string;
  /** Objects that it creates. */
  readonly objects: number;
  /** Bytes of its body. */
  readonly bytes: number;
}

/** Counts uploads, exactly over all processes. */
export interface Uploads {
  /**
   * Counts an upload before it is sent. One that the vendor refuses afterwards counts too.
   *
   * @throws GatewayError INSUFFICIENT_BALANCE without money; RATE_LIMIT_EXCEEDED over the limits of
   * the day
   */
  admit(upload: Upload): Promise<void>;
}

const sql = {
  money: `select 1 from balance where account_id = $1 and available > 0`,
  count: `insert into native_upload as u (account_id, day, objects, bytes)
    select $1::uuid, (now() at time zone 'utc')::date, $2::integer, $3::bigint
      where $2::integer <= $4::integer and $3::bigint <= $5::bigint
    on conflict (account_id, day) do update
      set objects = u.objects + excluded.objects, bytes = u.bytes + excluded.bytes
      where u.objects + excluded.objects <= $4 and u.bytes + excluded.bytes <= $5`,
  untilTomorrow: `select ceil(extract(epoch from
    date_trunc('day', now(), 'utc') + interval '1 day' - now()))::int as seconds`,
} as const;

/** Creates the counter. @param limitsNow the limits in force */
export function createUploads(pool: Pool, limitsNow: () => UploadLimits): Uploads {
  return {
    async admit({ accountId, objects, bytes }) {
      const { rowCount: funded } = await mapDatabaseLoss(pool.query(sql.money, [accountId]));
      if (funded === 0) throw noMoney();
      const limits = limitsNow();
      const values = [accountId, objects, bytes, limits.objectsPerDay, limits.bytesPerDay];
      const { rowCount: counted } = await mapDatabaseLoss(pool.query(sql.count, values));
      if (counted !== 0) return;
      const { rows } = await mapDatabaseLoss(pool.query<{ seconds: number }>(sql.untilTomorrow));
      throw tooMuch(limits, rows[0]?.seconds ?? 1);
    },
  };
}

function noMoney(): GatewayError {
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    "Uploads need a positive balance: top up the account, then upload again",
  );
}

function tooMuch(
  { objectsPerDay, bytesPerDay }: UploadLimits,
  retryAfterSeconds: number,
): GatewayError {
  return new GatewayError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `Rate limit exceeded: an account may upload ${objectsPerDay} files and ${bytesPerDay} bytes a day (UTC); upload again tomorrow`,
    { retryAfterSeconds },
  );
}
