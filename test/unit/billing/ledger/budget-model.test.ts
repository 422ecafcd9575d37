/** Budgets are exact, in whatever order holds, extensions, settlements and ends of periods come. */
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { BudgetPeriod } from "../../../../gen/uas/type/v1/budget_pb.ts";
import { createLedger } from "../../../../src/billing/ledger/ledger-writer.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";
import { budgetRig } from "./budget-rig.ts";

let billing: Billing;
beforeAll(async () => {
  billing = await openBilling();
});
afterAll(() => billing.close());

const { DAY, MONTH } = BudgetPeriod;

it("1,000 parallel calls of four processes at the boundary of a budget spend exactly the budget", async () => {
  const { accountId, setBudgets, figures } = await budgetRig(billing, 1_000_000n);
  await setBudgets([[MONTH, 3_000]]);
  const ledgers = Array.from({ length: 4 }, () =>
    createLedger({ url: billing.url, connections: 2, holdWaitMs }),
  );
  onTestFinished(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
  });
  const costNanos = 7n;
  const verdicts = await Promise.all(
    Array.from({ length: 1_000 }, async (_, index) => {
      const ledger = ledgers[index % ledgers.length];
      if (ledger === undefined) throw new Error("unreachable");
      const id = newId();
      const verdict = await ledger.hold({ id, accountId, amountNanos: costNanos, keyId: "" });
      if (verdict.admitted) {
        await ledger.settle({ id, accountId, costNanos, record: callRow(id, accountId) });
      }
      return verdict;
    }),
  );
  const admitted = verdicts.filter((verdict) => verdict.admitted);
  const refused = verdicts.filter((verdict) => !verdict.admitted);
  expect(admitted).toHaveLength(428);
  expect(refused.every((verdict) => "budget" in verdict)).toBe(true);
  expect(await figures()).toEqual([{ period: MONTH, spent: 2_996n, held: 0n }]);
  await billing.expectClean();
});

type Step =
  | { readonly kind: "hold"; readonly key: number; readonly amount: bigint }
  | { readonly kind: "extend" | "settle"; readonly which: number; readonly amount: bigint }
  | { readonly kind: "next" };

const amounts = fc.bigInt(0n, 60n);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("hold" as const), key: fc.nat(2), amount: amounts }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("extend" as const, "settle" as const),
      which: fc.nat(20),
      amount: amounts,
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "next" as const }) },
);

it("whatever holds, grows, settles and rolls over, no period spends more than its budget, and its figures are the sums of its holds", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const { accountId, setBudgets, endDays, hold } = await budgetRig(billing, 1_000n);
      const keys = [newId(), newId(), newId()];
      await setBudgets([
        [DAY, 100],
        [MONTH, 180],
      ]);
      await setBudgets([[DAY, 70]], keys[0]);
      const open = new Map<string, bigint>();
      for (const each of steps) {
        if (each.kind === "next") {
          await endDays();
        } else if (each.kind === "hold") {
          const [id, { admitted }] = await hold(each.amount, keys[each.key]);
          if (admitted) open.set(id, each.amount);
        } else {
          const ids = [...open.keys()];
          const id = ids[each.which % Math.max(1, ids.length)];
          if (id === undefined) continue;
          const held = open.get(id) ?? 0n;
          if (each.kind === "extend") {
            const amountNanos = held + each.amount;
            const { extends: grown } = await billing.send({
              accountId,
              extends: [{ id, amountNanos }],
            });
            open.set(id, grown[0]?.heldNanos ?? held);
          } else {
            const cost = each.amount < held ? each.amount : held;
            await billing.send({ accountId, settles: [[id, cost]] });
            open.delete(id);
          }
        }
        await expectExact(accountId);
      }
    }),
    { numRuns: 40 },
  );
  await billing.expectClean();
});

/**
 * The figures of every budget of the account equal the sums over its holds, and do not exceed it.
 */
async function expectExact(accountId: string): Promise<void> {
  const { rows } = await billing.pool.query(
    `select b.owner_id, b.period, b.spent, b.held, s.spent as sum_spent, s.held as sum_held, b.amount
      from budget b cross join lateral (
        select coalesce(sum(h.settled) filter (where h.state <> 1), 0) as spent,
          coalesce(sum(h.amount) filter (where h.state = 1), 0) as held
        from hold h where h.account_id = b.account_id and h.budget_time >= b.start_time
          and b.owner_id in (h.account_id, h.key_id)) s
      where b.account_id = $1 and b.end_time > now()
        and (b.spent <> s.spent or b.held <> s.held or b.spent + b.held > b.amount)`,
    [accountId],
  );
  expect(rows).toEqual([]);
}
