/** Ends the holds of processes that are dead, and those that have expired. The database's clock alone decides. */
import type { Pool } from "pg";
import type { At } from "./points.ts";

/** What {@link sweepHolds} needs. */
export interface SweepOptions {
  /** The plain pool of the database. */
  readonly pool: Pool;
  /** The process that sweeps, while it tells the database that it lives. Default: none; then nobody is taken
   * for dead, and only who was before is swept. */
  readonly nodeId: string | undefined;
  /** How long a process is silent before it is taken for dead, in milliseconds. */
  readonly silentMs: number;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly onLowBalance: (accountId: string, balanceNanos: bigint) => void;
  readonly at: At | undefined;
}

/** The most holds of one look, of either kind. More are found by the next one, at once. */
const sweepMax = 10_000;

const findStatement = `
select account_id, array_agg(id) as ids from (
  (select account_id, id from hold where state = 1 and expires_at < clock_timestamp()
     order by expires_at limit ${sweepMax})
  union
  (select account_id, id from hold where state = 1 and node_id = any($1::uuid[]) limit ${sweepMax})
) gone group by account_id order by account_id`;

/**
 * Sweeps: each account in a transaction of its own, the account locked before its holds, as everywhere.
 *
 * @returns how many holds it ended.
 */
export async function sweepHolds(options: SweepOptions): Promise<number> {
  const { pool, nodeId, silentMs, warn, at } = options;
  const { rows: nodes } = await pool.query<{ ids: string[] | null }>(
    "select ledger_end_silent($1, $2) as ids",
    [nodeId ?? null, silentMs],
  );
  for (let ended = 0; ; ) {
    const { rows } = await pool.query<{ account_id: string; ids: string[] }>(findStatement, [
      nodes[0]?.ids ?? null,
    ]);
    if (rows.length > 0) at?.("sweep.found");
    let found = 0;
    const before = ended;
    for (const { account_id: accountId, ids } of rows) {
      found += ids.length;
      try {
        ended += await sweepAccount(options, accountId, ids);
      } catch (error) {
        // One stuck account must not keep the money of the others.
        warn("the holds of an account could not be swept", { accountId, err: error });
      }
    }
    if (found < sweepMax || ended === before) return ended;
  }
}

async function sweepAccount(
  { pool, onLowBalance, at }: SweepOptions,
  accountId: string,
  ids: string[],
): Promise<number> {
  const answer = pool.query<{ ended: number; low_balance: string | null }>(
    "select ended, low_balance from ledger_recover_holds($1, $2)",
    [accountId, ids],
  );
  at?.("sweep.begun");
  const { rows } = await answer;
  at?.("sweep.done");
  const { ended = 0, low_balance: low = null } = rows[0] ?? {};
  if (low !== null) onLowBalance(accountId, BigInt(low));
  return ended;
}
