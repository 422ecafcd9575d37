/** An account with budgets, and short words for what tests do with it. */
import type { HoldVerdict } from "../../../../src/billing/ledger/ledger.ts";
import { newId } from "../../../../src/core/uuid.ts";
import type { Billing } from "../harness.ts";

/** The counted amounts of a budget. */
export interface Figures {
  readonly period: number;
  readonly spent: bigint;
  readonly held: bigint;
}

/** An account with budgets. */
export interface BudgetRig {
  readonly accountId: string;
  /** Sets the budgets of the account, or of the key `owner`. */
  readonly setBudgets: (
    budgets: readonly (readonly [period: number, amount: number, zone?: string])[],
    owner?: string,
  ) => Promise<void>;
  /** The figures of the account's budgets, or of those of the key `owner`. */
  readonly figures: (owner?: string) => Promise<Figures[]>;
  /**
   * Lets days end, as if what happened so far had happened a day before. Longer periods began long
   * ago and go on.
   */
  readonly endDays: () => Promise<void>;
  readonly hold: (
    amountNanos: bigint,
    keyId?: string,
  ) => Promise<readonly [id: string, verdict: HoldVerdict]>;
}

/** Makes an account with this balance. */
export async function budgetRig(billing: Billing, balanceNanos: bigint): Promise<BudgetRig> {
  const accountId = await billing.account(balanceNanos);
  return {
    accountId,
    async setBudgets(budgets, owner = accountId) {
      await billing.pool.query("select ledger_budget_set($1, $2, $3, $4, $5)", [
        accountId,
        owner,
        budgets.map(([period]) => period),
        budgets.map(([, amount]) => amount),
        budgets.map(([, , zone = "UTC"]) => zone),
      ]);
    },
    async figures(owner = accountId) {
      const { rows } = await billing.pool.query<{ period: number; spent: string; held: string }>(
        "select period, spent, held from budget where owner_id = $1 order by period",
        [owner],
      );
      return rows.map(({ period, spent, held }) => ({
        period,
        spent: BigInt(spent),
        held: BigInt(held),
      }));
    },
    async endDays() {
      await billing.pool.query(
        `update budget set start_time = start_time - interval '40 days',
            end_time = end_time - case when period = 1 then interval '1 day' else interval '0' end
          where account_id = $1`,
        [accountId],
      );
      await billing.countEarlier(accountId, 1);
    },
    async hold(amountNanos, keyId) {
      const id = newId();
      const { holds } = await billing.send({
        accountId,
        holds: [{ id, amountNanos, ...(keyId !== undefined && { keyId }) }],
      });
      return [id, holds[0] ?? { admitted: true }];
    },
  };
}
