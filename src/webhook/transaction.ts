/** SQL inside a transaction of somebody else. */
import type { EntityManager } from "@mikro-orm/postgresql";

/** A transaction that is open: an entity manager inside `transactional`, or a driver's connection. */
export type Transaction =
  | Pick<EntityManager, "execute" | "isInTransaction">
  | { query(text: string, values: unknown[]): Promise<{ rows: unknown[] }> };

/** Runs a statement with `$1`, `$2`, … in it. @throws the driver's error; the transaction is then aborted */
export async function execute<Row>(
  transaction: Transaction,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  if ("query" in transaction) return (await transaction.query(text, [...values])).rows as Row[];
  if (!transaction.isInTransaction()) throw new Error("a webhook needs an open transaction");
  const inOrder: unknown[] = [];
  const marked = text.replaceAll(/\$(\d+)/g, (_mark, number: string) => {
    inOrder.push(values[Number(number) - 1]);
    return "?";
  });
  return transaction.execute<Row[]>(marked, inOrder);
}
