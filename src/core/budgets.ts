/**
 * Budgets of keys and accounts: the interface through which the rooms that own them use billing,
 * which stores them.
 */
import type { EntityManager } from "@mikro-orm/postgresql";
import type { Budget } from "../../gen/uas/type/v1/budget_pb.ts";
import { formatUsd } from "./money.ts";

/** The billing functions that the owner of budgets uses. */
export interface Budgets {
  /**
   * Reads the budgets of keys and accounts, by owner. Owners without budgets are omitted.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE if the database cannot be reached
   */
  readonly of: (ownerIds: readonly string[]) => Promise<ReadonlyMap<string, readonly Budget[]>>;
  /**
   * Checks budgets that a client sent; an empty time zone becomes UTC. @throws GatewayError
   * INVALID_REQUEST
   */
  readonly check: (budgets: readonly Budget[]) => readonly Budget[];
  /**
   * Replaces the budgets of a key or an account by checked ones, in the transaction that changes
   * their owner. It locks the account's balance: call it last.
   */
  readonly set: (em: Pick<EntityManager, "execute">, wanted: WantedBudgets) => Promise<void>;
}

interface WantedBudgets {
  readonly accountId: string;
  /** The key; for budgets of an account, the account. */
  readonly ownerId: string;
  readonly budgets: readonly Budget[];
}

/** The words of BudgetPeriod. */
export const periodWords: Readonly<Record<number, string>> = { 1: "day", 2: "week", 3: "month" };

/**
 * Budgets for the operator log, in a few words such as `10/month Asia/Shanghai`.
 *
 * @param budgets undefined if unchanged
 */
export function budgetFacts(
  budgets: readonly Budget[] | undefined,
): Readonly<Record<string, string | null>> {
  if (budgets === undefined) return {};
  const words = budgets.map(({ period, amount, timeZone }) => {
    const zone = timeZone === "UTC" ? "" : ` ${timeZone}`;
    return `${formatUsd(amount?.amountNanos ?? 0n)}/${periodWords[period] ?? period}${zone}`;
  });
  return { budgets: words.join(", ") || null };
}
