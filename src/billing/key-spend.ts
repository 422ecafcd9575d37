/** What keys have spent. */
import { answering, type Queryable } from "./queryable.ts";

/**
 * Tells what each key has spent in its life, in nano-USD. A key that is not in the answer has spent nothing.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where the database cannot be reached.
 */
export async function spentOfKeys(
  pool: Queryable,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await answering(pool).query<{ key_id: string; spent: string }>(
    "select key_id, spent from key_spend where key_id = any($1)",
    [keyIds],
  );
  return new Map(rows.map(({ key_id, spent }) => [key_id, BigInt(spent)]));
}
