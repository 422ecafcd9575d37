/**
 * Reasoning of models whose client speaks a style without a place for it (R-TXT-3): kept a day, sealed per
 * account, and found again by the ids of the tool calls that it led to.
 */
import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { keptReasoningBytesMax, keptReasoningTtlMs } from "../../config/limits.ts";
import { answering } from "../../database-lost.ts";
import type { RowOf } from "../../db/row.ts";
import { createSealing, type Sealing } from "../../sealing.ts";
import type { KeptReasoningEntity } from "../entity.ts";

/** Keeps reasoning. Both methods throw GatewayError SERVICE_UNAVAILABLE where the database is away. */
export interface ReasoningCarry {
  /**
   * Keeps the reasoning of one turn, durably: before the client can come back with a result.
   *
   * @param toolCallIds the ids of all calls of the turn, as the client gets them
   * @param partsJson the turn's reasoning parts, as JSON of the caller's choice
   * @returns false where it is not kept: no calls, or longer than `keptReasoningBytesMax`
   */
  keep(accountId: string, toolCallIds: readonly string[], partsJson: string): Promise<boolean>;
  /**
   * Looks up the reasoning of the turns that made these calls: all calls of a conversation in one query.
   *
   * @returns the JSON by the call's id; calls of the same turn have the same. What has expired, or was kept
   * for another account, is missing.
   */
  find(accountId: string, toolCallIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** What {@link createReasoningCarry} needs. */
export interface ReasoningCarryOptions {
  readonly pool: Pool;
  /** The master key, 32 bytes. */
  readonly key: Uint8Array;
  /** Told where something cannot be opened: the master key was changed, or differs between processes.
   * Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** Makes one over a database. */
export function createReasoningCarry(options: ReasoningCarryOptions): ReasoningCarry {
  const { pool, key, warn = () => {} } = options;
  const sealing = createSealing(key, "reasoning");
  return {
    keep: (accountId, toolCallIds, partsJson) =>
      keep({ pool, sealing }, { accountId, toolCallIds, partsJson }),
    async find(accountId, toolCallIds) {
      const found = new Map<string, string>();
      if (toolCallIds.length === 0) return found;
      const kept = await read(pool, accountId, toolCallIds);
      for (const id of toolCallIds) {
        const row = kept.get(digestOf(id).toString("hex"));
        if (row === undefined) continue;
        const text = sealing.open(accountId, row.first_digest, row.sealed);
        if (text !== undefined) found.set(id, text);
        else warn("kept reasoning cannot be opened: was UAS_MASTER_KEY changed?", { accountId });
      }
      return found;
    },
  };
}

/** In the order of digests, so that two that keep the same at once do not wait for each other. */
const keepSql = `
insert into kept_reasoning (account_id, digest, first_digest, sealed, expires_at)
  select $1, d, $3, case when d = $3 then $4::bytea end, now() + $5 * interval '1 ms'
    from unnest($2::bytea[]) as d order by d
  on conflict (account_id, digest) do update set
    first_digest = excluded.first_digest, sealed = excluded.sealed, expires_at = excluded.expires_at`;

const findSql = `
select r.digest, f.digest as first_digest, f.sealed
  from kept_reasoning r
  join kept_reasoning f on f.account_id = r.account_id and f.digest = r.first_digest
  where r.account_id = $1 and r.digest = any($2::bytea[])
    and r.expires_at > now() and f.sealed is not null`;

type Row = RowOf<typeof KeptReasoningEntity, "digest" | "first_digest"> & {
  readonly sealed: Buffer;
};

async function keep(
  { pool, sealing }: { readonly pool: Pool; readonly sealing: Sealing },
  kept: { accountId: string; toolCallIds: readonly string[]; partsJson: string },
): Promise<boolean> {
  const { accountId, partsJson } = kept;
  const digests = [...new Set(kept.toolCallIds)].map(digestOf);
  const [first] = digests;
  if (first === undefined || Buffer.byteLength(partsJson) > keptReasoningBytesMax) return false;
  const sealed = sealing.seal(accountId, first, partsJson);
  await answering(pool.query(keepSql, [accountId, digests, first, sealed, keptReasoningTtlMs]));
  return true;
}

async function read(
  pool: Pool,
  accountId: string,
  toolCallIds: readonly string[],
): Promise<ReadonlyMap<string, Row>> {
  const digests = [...new Set(toolCallIds)].map(digestOf);
  const { rows } = await answering(pool.query<Row>(findSql, [accountId, digests]));
  return new Map(rows.map((row) => [row.digest.toString("hex"), row]));
}

/** Ids are made by vendors: of any length, and with any characters. */
function digestOf(toolCallId: string): Buffer {
  return createHash("sha256").update(toolCallId).digest();
}
