import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { callRow } from "../calls/call-row.ts";
import { type Billing, openBilling } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

const admitted = { admitted: true };

describe("ledger_apply: growth, keys, costs of vendors, thresholds", () => {
  let billing: Billing;
  beforeAll(async () => void (billing = await openBilling()));
  afterEach(() => billing.expectClean());
  afterAll(() => billing.close());

  const held = async (accountId: string, amountNanos: bigint, keyId = ""): Promise<string> => {
    const id = newId();
    const { holds } = await billing.send({ accountId, holds: [{ id, amountNanos, keyId }] });
    expect(holds).toEqual([admitted]);
    return id;
  };
  const rows = async (text: string, id: string): Promise<unknown[]> =>
    (await billing.pool.query({ text, values: [id], rowMode: "array" })).rows;
  const steps = (id: string) =>
    rows("select n, amount from hold_step where hold_id = $1 order by n", id);
  const checkpoint = (id: string) =>
    rows("select cost, record->>'model' from hold_checkpoint where hold_id = $1", id);
  const spend = (keyId: string) =>
    rows("select spent, held from key_spend where key_id = $1", keyId);

  test("R-MON-5: a batch settles, then extends, then holds, in the order in which money becomes free", async () => {
    const accountId = await billing.account(100n);
    const [done, running] = [await held(accountId, 60n), await held(accountId, 40n)];
    const verdicts = await billing.send({
      accountId,
      settles: [[done, 10n]],
      extends: [{ id: running, amountNanos: 70n }],
      holds: [
        { id: newId(), amountNanos: 21n },
        { id: newId(), amountNanos: 20n },
      ],
    });
    expect(verdicts).toEqual({
      settles: ["settled"],
      extends: [{ heldNanos: 70n }],
      holds: [{ admitted: false, availableNanos: 20n }, admitted],
      low: undefined,
    });
    expect(await billing.balance(accountId)).toEqual({ available: 0n, held: 90n });
  });

  test("R-MON-5: an extension that does not fit is granted in part, first come first served, and amounts never shrink", async () => {
    const accountId = await billing.account(100n);
    const [a, b, c] = [
      await held(accountId, 10n),
      await held(accountId, 10n),
      await held(accountId, 0n),
    ];
    const ask = [
      { id: a, amountNanos: 80n },
      { id: b, amountNanos: 50n },
      { id: c, amountNanos: 1n },
      { id: newId(), amountNanos: 1n },
    ];
    const answer = [
      { heldNanos: 80n },
      { heldNanos: 20n },
      { heldNanos: 0n },
      { heldNanos: 0n, closed: true },
    ];
    expect((await billing.send({ accountId, extends: ask })).extends).toEqual(answer);
    // An answer that was lost: the same figures change nothing.
    expect((await billing.send({ accountId, extends: ask })).extends).toEqual(answer);
    const less = [{ id: a, amountNanos: 5n }];
    expect((await billing.send({ accountId, extends: less })).extends).toEqual([
      { heldNanos: 80n },
    ]);
    expect(await billing.balance(accountId)).toEqual({ available: 0n, held: 100n });
    expect(await steps(a)).toEqual([[1, "70"]]);
    expect(await steps(b)).toEqual([[1, "10"]]);
    expect(await steps(c)).toEqual([]);
  });

  test("a hold of another account can neither be extended nor checkpointed", async () => {
    const [owner, other] = [await billing.account(100n), await billing.account(100n)];
    const id = await held(owner, 10n);
    const { extends: verdicts } = await billing.send({
      accountId: other,
      extends: [{ id, amountNanos: 50n, checkpointNanos: 5n }],
    });
    expect(verdicts).toEqual([{ heldNanos: 0n, closed: true }]);
    expect(await checkpoint(id)).toEqual([]);
    expect(await billing.balance(owner)).toEqual({ available: 90n, held: 10n });
  });

  test("each extension is an immutable step, and a hold without extensions has none", async () => {
    const accountId = await billing.account(100n);
    const id = await held(accountId, 10n);
    for (const amountNanos of [20n, 20n, 50n]) {
      await billing.send({ accountId, extends: [{ id, amountNanos }] });
    }
    await billing.send({ accountId, settles: [[id, 30n]] });
    expect(await steps(id)).toEqual([
      [1, "10"],
      [2, "30"],
    ]);
    for (const sql of ["update hold_step set amount = 1", "delete from hold_step"]) {
      await expect(billing.pool.query(sql)).rejects.toThrow("append-only");
    }
  });

  test("R-MON-7: a checkpoint is replaced by the next one, and goes with the hold", async () => {
    const accountId = await billing.account(100n);
    const id = await held(accountId, 10n);
    const tell = (checkpointNanos: bigint, model?: string) =>
      billing.send({
        accountId,
        extends: [
          {
            id,
            amountNanos: 0n,
            checkpointNanos,
            ...(model !== undefined && { record: callRow(id, accountId, { model }) }),
          },
        ],
      });
    await tell(3n);
    expect(await checkpoint(id)).toEqual([["3", null]]);
    await tell(5n, "m\0\ud800");
    await tell(6n);
    expect(await checkpoint(id)).toEqual([["6", "m\ufffd\ufffd"]]);
    await billing.send({ accountId, settles: [[id, 7n]] });
    expect(await checkpoint(id)).toEqual([]);
    await tell(8n);
    expect(await checkpoint(id)).toEqual([]);
  });

  test("R-KEY-4: a key's limit refuses holds above it, and reports the rest of the limit", async () => {
    const accountId = await billing.account(1_000n);
    const [keyId, other] = [newId(), newId()];
    const ask = (amountNanos: bigint, key = keyId) => ({
      id: newId(),
      amountNanos,
      keyId: key,
      ...(key === keyId && { keyLimitNanos: 100n }),
    });
    const first = ask(60n);
    const { holds } = await billing.send({
      accountId,
      holds: [first, ask(50n), ask(500n, other), ask(40n), ask(0n), ask(1n)],
    });
    const refused = (availableNanos: bigint, keyRemainingNanos: bigint) => ({
      admitted: false,
      availableNanos,
      keyRemainingNanos,
    });
    expect(holds).toEqual([
      admitted,
      refused(940n, 40n),
      admitted,
      admitted,
      admitted,
      refused(400n, 0n),
    ]);
    expect(await spend(keyId)).toEqual([["0", "100"]]);
    // The real cost of a call frees money, or takes more than was held.
    await billing.send({ accountId, settles: [[first.id, 10n]] });
    expect(await spend(keyId)).toEqual([["10", "40"]]);
    const fits = await billing.send({ accountId, holds: [ask(30n), ask(20n)] });
    expect(fits.holds).toEqual([admitted, admitted]);
    const over = await billing.send({ accountId, holds: [ask(1n)] });
    expect(over.holds).toEqual([refused(400n, 0n)]);
    expect(await spend(other)).toEqual([["0", "500"]]);
  });

  test("R-KEY-4: an insufficient balance is reported before the key's limit", async () => {
    const accountId = await billing.account(10n);
    const hold = { id: newId(), amountNanos: 11n, keyId: newId(), keyLimitNanos: 5n };
    const { holds } = await billing.send({ accountId, holds: [hold] });
    expect(holds).toEqual([{ admitted: false, availableNanos: 10n }]);
  });

  test("R-KEY-4: a hold grows no further than its key's limit; keys without one are counted too", async () => {
    const accountId = await billing.account(1_000n);
    const [limited, free] = [newId(), newId()];
    const [a, b, c] = [newId(), newId(), newId()];
    await billing.send({
      accountId,
      holds: [
        { id: a, amountNanos: 10n, keyId: limited, keyLimitNanos: 100n },
        { id: b, amountNanos: 10n, keyId: limited, keyLimitNanos: 100n },
        { id: c, amountNanos: 10n, keyId: free },
      ],
    });
    const { extends: grown } = await billing.send({
      accountId,
      extends: [a, b, c].map((id) => ({ id, amountNanos: 70n })),
    });
    expect(grown).toEqual([{ heldNanos: 70n }, { heldNanos: 30n }, { heldNanos: 70n }]);
    expect([await spend(limited), await spend(free)]).toEqual([[["0", "100"]], [["0", "70"]]]);
    // A cost is a cost, also over the limit: only holds are refused.
    await billing.send({ accountId, settles: [[a, 90n]] });
    expect(await spend(limited)).toEqual([["90", "30"]]);
    const more = await billing.send({ accountId, extends: [{ id: b, amountNanos: 31n }] });
    expect(more.extends).toEqual([{ heldNanos: 30n }]);
    // Nor is what costs nothing.
    const hold = (amountNanos: bigint) => ({
      id: newId(),
      amountNanos,
      keyId: limited,
      keyLimitNanos: 100n,
    });
    const { holds } = await billing.send({ accountId, holds: [hold(0n), hold(1n)] });
    expect(holds).toMatchObject([admitted, { keyRemainingNanos: 0n }]);
  });

  test("the vendor's cost is booked beside the charge, also where the customer pays nothing", async () => {
    const accountId = await billing.account(100n);
    const [paid, free, plain] = [
      await held(accountId, 10n),
      await held(accountId, 10n),
      await held(accountId, 10n),
    ];
    await billing.send({
      accountId,
      settles: [
        [paid, 9n, { vendor_cost: "6" }],
        [free, 0n, { vendor_cost: "2" }],
        [plain, 5n],
      ],
    });
    expect(await billing.entries(paid)).toEqual({ 1: "-9", 2: "9", 7: "-6", 8: "6" });
    expect(await billing.entries(free)).toEqual({ 7: "-2", 8: "2" });
    expect(await billing.entries(plain)).toEqual({ 1: "-5", 2: "5" });
  });

  test("each charge records the customer's balance after it", async () => {
    const accountId = await billing.account(100n);
    const ids = [await held(accountId, 10n), await held(accountId, 10n), await held(accountId, 9n)];
    await billing.send({
      accountId,
      settles: [
        [ids[1] ?? "", 7n],
        [ids[0] ?? "", 5n],
      ],
    });
    await billing.send({ accountId, settles: [[ids[2] ?? "", 100n]] });
    const { rows: after } = await billing.pool.query<{ balance_after: string }>(
      "select balance_after from ledger_entry where account_id = $1 and account = 1 order by txn_id",
      [accountId],
    );
    expect(after.map((row) => row.balance_after)).toEqual(["100", "95", "88", "0"]);
  });

  test("falling below the threshold is reported once each time", async () => {
    const accountId = await billing.account(100n);
    const settle = async (cost: bigint) =>
      (await billing.send({ accountId, settles: [[await held(accountId, cost), cost]] })).low;
    expect(await settle(40n)).toBeUndefined();
    await billing.pool.query("update balance set low_below = 50 where account_id = $1", [
      accountId,
    ]);
    // Money that is only held is still there.
    const running = await held(accountId, 30n);
    expect(await settle(10n)).toBeUndefined();
    expect(await settle(1n)).toBe(49n);
    expect(await settle(1n)).toBeUndefined();
    expect((await billing.send({ accountId, settles: [[running, 0n]] })).low).toBeUndefined();
  });
});
