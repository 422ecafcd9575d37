/**
 * Budgets in the ledger: counted by the database's clock, each call in the period in which it was
 * held.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BudgetPeriod } from "../../../../gen/uas/type/v1/budget_pb.ts";
import type { HoldVerdict } from "../../../../src/billing/ledger/ledger.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { type Billing, openBilling } from "../harness.ts";
import { type BudgetRig, budgetRig } from "./budget-rig.ts";

let billing: Billing;
let accountId: string;
let setBudgets: BudgetRig["setBudgets"];
let figures: BudgetRig["figures"];
let endDays: BudgetRig["endDays"];
let hold: BudgetRig["hold"];
beforeAll(async () => {
  billing = await openBilling();
});
afterAll(() => billing.close());
beforeEach(async () => {
  ({ accountId, setBudgets, figures, endDays, hold } = await budgetRig(billing, 1_000_000n));
});

const { DAY, WEEK, MONTH } = BudgetPeriod;

describe("a budget", () => {
  it("refuses the hold that would exceed it, and says what is left and when it resets", async () => {
    await setBudgets([[MONTH, 100, "Asia/Shanghai"]]);
    const [, first] = await hold(70n);
    expect(first).toEqual({ admitted: true, isBudgeted: true });
    const [, refused] = await hold(31n);
    expect(refused).toMatchObject({
      admitted: false,
      availableNanos: 999_930n,
      budget: {
        owner: "account",
        period: MONTH,
        amountNanos: 100n,
        remainingNanos: 30n,
        timeZone: "Asia/Shanghai",
      },
    });
    const { rows } = await billing.pool.query<{ end_time: Date }>(
      "select (date_trunc('month', now() at time zone 'Asia/Shanghai') + interval '1 month') " +
        "at time zone 'Asia/Shanghai' as end_time",
    );
    const { budget } = refused as Extract<HoldVerdict, { admitted: false }>;
    expect(budget?.resetTime).toEqual(rows[0]?.end_time);
    expect((await hold(30n))[1].admitted).toBe(true);
    expect(await figures()).toEqual([{ period: MONTH, spent: 0n, held: 100n }]);
  });

  it("a key's budget binds that key only, and the account's binds all keys together", async () => {
    const [a, b] = [newId(), newId()];
    await setBudgets([[DAY, 50]], a);
    await setBudgets([[WEEK, 80]]);
    expect((await hold(51n, a))[1]).toMatchObject({
      budget: { owner: "key", remainingNanos: 50n },
    });
    expect((await hold(50n, a))[1].admitted).toBe(true);
    expect((await hold(31n, b))[1]).toMatchObject({
      budget: { owner: "account", remainingNanos: 30n },
    });
    expect((await hold(30n, b))[1].admitted).toBe(true);
    expect((await hold(0n, b))[1].admitted).toBe(true);
  });

  it("counts what calls cost, also beyond their hold, and gives back what they did not use", async () => {
    await setBudgets([[DAY, 100]]);
    const [id] = await hold(60n);
    await billing.send({ accountId, settles: [[id, 10n]] });
    expect(await figures()).toEqual([{ period: DAY, spent: 10n, held: 0n }]);
    const [over] = await hold(20n);
    await billing.send({ accountId, settles: [[over, 95n]] });
    expect(await figures()).toEqual([{ period: DAY, spent: 105n, held: 0n }]);
    expect((await hold(1n))[1]).toMatchObject({ budget: { remainingNanos: 0n } });
    await billing.expectClean();
  });

  it("counts a call once, however often its batches are repeated", async () => {
    await setBudgets([[DAY, 100]]);
    const id = newId();
    const holds = [{ id, amountNanos: 40n }];
    const sent = [
      await billing.send({ accountId, holds }),
      await billing.send({ accountId, holds }),
    ];
    expect(sent.map((each) => each.holds)).toEqual([
      [{ admitted: true, isBudgeted: true }],
      [{ admitted: true, isBudgeted: true }],
    ]);
    expect(await figures()).toEqual([{ period: DAY, spent: 0n, held: 40n }]);
    await billing.send({ accountId, settles: [[id, 7n]] });
    await billing.send({ accountId, settles: [[id, 7n]] });
    expect(await figures()).toEqual([{ period: DAY, spent: 7n, held: 0n }]);
  });

  it("grows a hold as far as it has room", async () => {
    await setBudgets([[DAY, 100]]);
    const [id] = await hold(40n);
    const grown = await billing.send({ accountId, extends: [{ id, amountNanos: 130n }] });
    expect(grown.extends).toEqual([{ heldNanos: 100n }]);
    expect(await figures()).toEqual([{ period: DAY, spent: 0n, held: 100n }]);
    await billing.send({ accountId, settles: [[id, 100n]] });
    expect(await figures()).toEqual([{ period: DAY, spent: 100n, held: 0n }]);
    await billing.expectClean();
  });
});

describe("at the end of a period", () => {
  it("the next one begins with the first call, without a job", async () => {
    await setBudgets([
      [DAY, 100],
      [MONTH, 150],
    ]);
    const [id] = await hold(100n);
    await billing.send({ accountId, settles: [[id, 100n]] });
    expect((await hold(1n))[1].admitted).toBe(false);
    await endDays();
    expect((await hold(60n))[1]).toMatchObject({ budget: { period: MONTH, remainingNanos: 50n } });
    expect((await hold(50n))[1].admitted).toBe(true);
    expect(await figures()).toEqual([
      { period: DAY, spent: 0n, held: 50n },
      { period: MONTH, spent: 100n, held: 50n },
    ]);
  });

  it("a call that was held before and settles after counts in the period before", async () => {
    await setBudgets([[DAY, 100]]);
    const [id] = await hold(90n);
    await endDays();
    expect((await hold(100n))[1].admitted).toBe(true);
    await billing.send({ accountId, settles: [[id, 80n]] });
    expect(await figures()).toEqual([{ period: DAY, spent: 0n, held: 100n }]);
    await billing.expectClean();
  });

  it("a call that was held before and grows after moves into the new period, whole or not at all", async () => {
    await setBudgets([[DAY, 100]]);
    const [[small], [large]] = [await hold(30n), await hold(60n)];
    await endDays();
    expect((await hold(50n))[1].admitted).toBe(true);
    const grown = await billing.send({
      accountId,
      extends: [
        { id: small, amountNanos: 45n },
        { id: large, amountNanos: 65n },
      ],
    });
    expect(grown.extends).toEqual([{ heldNanos: 45n }, { heldNanos: 60n }]);
    expect(await figures()).toEqual([{ period: DAY, spent: 0n, held: 95n }]);
    await billing.send({
      accountId,
      settles: [
        [small, 45n],
        [large, 60n],
      ],
    });
    expect(await figures()).toEqual([{ period: DAY, spent: 45n, held: 50n }]);
    await billing.expectClean();
  });

  it.each([
    [
      "a day of 23 hours",
      "2026-03-29 12:00+02",
      DAY,
      "Europe/Berlin",
      ["2026-03-28T23:00", "2026-03-29T22:00"],
    ],
    [
      "a day of 25 hours",
      "2026-10-25 12:00+01",
      DAY,
      "Europe/Berlin",
      ["2026-10-24T22:00", "2026-10-25T23:00"],
    ],
    [
      "a week from Monday",
      "2026-11-22 10:00Z",
      WEEK,
      "UTC",
      ["2026-11-16T00:00", "2026-11-23T00:00"],
    ],
    [
      "a month of Kathmandu",
      "2026-11-30 18:20Z",
      MONTH,
      "Asia/Kathmandu",
      ["2026-11-30T18:15", "2026-12-31T18:15"],
    ],
    [
      "the hour before a second midnight",
      "2026-11-01 04:30Z",
      DAY,
      "America/Havana",
      ["2026-10-31T04:00", "2026-11-01T05:00"],
    ],
    [
      "the hour after it",
      "2026-11-01 05:30Z",
      DAY,
      "America/Havana",
      ["2026-11-01T05:00", "2026-11-02T05:00"],
    ],
    [
      "a day that has no midnight",
      "2026-04-24 12:00Z",
      DAY,
      "Africa/Cairo",
      ["2026-04-23T22:00", "2026-04-24T21:00"],
    ],
  ])("the budget period is %s (%s)", async (_, now, period, zone, expected) => {
    const { rows } = await billing.pool.query<{ start_time: Date; end_time: Date }>(
      "select * from ledger_budget_period($1, $2::smallint, $3)",
      [now, period, zone],
    );
    const { start_time: start, end_time: end } = rows[0] ?? {};
    expect([start, end].map((time) => time?.toISOString().slice(0, 16))).toEqual(expected);
  });

  it("a clock of the database that goes back opens no period again", async () => {
    await setBudgets([[DAY, 100]]);
    await hold(10n);
    await billing.pool.query(
      "update balance set budget_time = budget_time + interval '10 days' where account_id = $1",
      [accountId],
    );
    const [id] = await hold(60n);
    await billing.send({ accountId, settles: [[id, 50n]] });
    expect(await figures()).toEqual([{ period: DAY, spent: 50n, held: 0n }]);
  });
});

describe("a change of budgets", () => {
  it("counts what the period has cost and holds already", async () => {
    const keyId = newId();
    const settled = newId();
    await billing.send({ accountId, holds: [{ id: settled, amountNanos: 30n, keyId }] });
    await billing.send({ accountId, settles: [[settled, 25n, { key_id: keyId }]] });
    const [open] = await hold(40n, keyId);
    await hold(5n);
    await setBudgets([[MONTH, 100]], keyId);
    await setBudgets([[MONTH, 200]]);
    expect(await figures(keyId)).toEqual([{ period: MONTH, spent: 25n, held: 40n }]);
    expect(await figures()).toEqual([{ period: MONTH, spent: 25n, held: 45n }]);
    await billing.send({ accountId, settles: [[open, 35n, { key_id: keyId }]] });
    expect(await figures(keyId)).toEqual([{ period: MONTH, spent: 60n, held: 0n }]);
    expect(await figures()).toEqual([{ period: MONTH, spent: 60n, held: 5n }]);
  });

  it("keeps the count where the amount changes, and none is left when all are removed", async () => {
    await setBudgets([[DAY, 100]]);
    const [id] = await hold(60n);
    await setBudgets([[DAY, 50]]);
    expect((await hold(1n))[1]).toMatchObject({ budget: { amountNanos: 50n, remainingNanos: 0n } });
    await setBudgets([[DAY, 70]]);
    expect((await hold(10n))[1].admitted).toBe(true);
    await setBudgets([]);
    expect((await hold(500n))[1]).toEqual({ admitted: true });
    await billing.send({ accountId, settles: [[id, 60n]] });
    expect(await billing.count("budget", `account_id = '${accountId}'`)).toBe(0);
    await billing.expectClean();
  });

  it("counts a call of a lost process by its late settlement", async () => {
    await setBudgets([[DAY, 100]]);
    const [id] = await hold(60n);
    await billing.age([id], 1);
    await billing.pool.query("select ledger_recover_holds($1, $2)", [accountId, [id]]);
    expect(await figures()).toEqual([{ period: DAY, spent: 0n, held: 0n }]);
    await billing.send({ accountId, settles: [[id, 55n]] });
    expect(await figures()).toEqual([{ period: DAY, spent: 55n, held: 0n }]);
  });
});
