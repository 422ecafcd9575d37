import { MikroORM } from "@mikro-orm/postgresql";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { applyIn } from "../../../../src/billing/ledger/apply-in.ts";
import { ormOptions } from "../../../../src/db/database.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, openBilling } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

const refused = (availableNanos: bigint) => ({ admitted: false, availableNanos });
const closed = { admitted: false, availableNanos: 0n, closed: true };
const admitted = { admitted: true };

describe("ledger_apply", () => {
  let billing: Billing;
  beforeAll(async () => void (billing = await openBilling()));
  afterEach(() => billing.expectClean(["I16"]));
  afterAll(() => billing.close());

  /** Holds once, for the tests of what comes after. */
  const held = async (accountId: string, amountNanos: bigint): Promise<string> => {
    const id = newId();
    const { holds } = await billing.apply({ accountId, holds: [{ id, amountNanos }] });
    expect(holds).toEqual([admitted]);
    return id;
  };
  const settle = (accountId: string, id: string, costNanos: bigint) =>
    billing.apply({
      accountId,
      settles: [{ id, costNanos, record: callRow(id, accountId, { held: "1" }) }],
    });
  const entries = async (id: string): Promise<Record<number, string>> => {
    const text = "select account, amount from ledger_entry where txn_id = $1";
    const { rows } = await billing.pool.query<{ account: number; amount: string }>(text, [id]);
    return Object.fromEntries(rows.map((row) => [row.account, row.amount]));
  };

  test("R-MON-2: a hold reserves money, and its settlement charges and records the call", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 60n);
    expect(await billing.balance(account)).toEqual({ available: 40n, held: 60n });
    expect((await settle(account, id, 25n)).settles).toEqual(["settled"]);
    expect(await billing.balance(account)).toEqual({ available: 75n, held: 0n });
    expect(await entries(id)).toEqual({ 1: "-25", 2: "25" });
    expect(await billing.count("call", `id = '${id}' and cost = 25`)).toBe(1);
  });

  test("R-MON-3: a cost above the hold takes the rest from the available balance", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 60n);
    await settle(account, id, 80n);
    expect(await billing.balance(account)).toEqual({ available: 20n, held: 0n });
    expect(await entries(id)).toEqual({ 1: "-80", 2: "80" });
  });

  test("R-MON-3: a shortfall of the available balance is the platform's loss, and does not fail the batch", async () => {
    const account = await billing.account(100n);
    const [short, other] = [await held(account, 60n), await held(account, 30n)];
    const { settles, holds } = await billing.apply({
      accountId: account,
      settles: [
        { id: short, costNanos: 95n, record: callRow(short, account, { cost: "95", held: "60" }) },
        { id: other, costNanos: 10n, record: callRow(other, account, { cost: "10", held: "30" }) },
      ],
      holds: [{ id: newId(), amountNanos: 1n }],
    });
    // 60 held + 10 available + 20 that the other call gives back: 5 short.
    expect(settles).toEqual(["settled", "settled"]);
    expect(await entries(short)).toEqual({ 1: "-90", 2: "95", 6: "-5" });
    expect(await entries(other)).toEqual({ 1: "-10", 2: "10" });
    expect(holds).toEqual([refused(0n)]);
    expect(await billing.balance(account)).toEqual({ available: 0n, held: 0n });
  });

  test("R-MON-3: another call's hold never pays for this one", async () => {
    const account = await billing.account(100n);
    const [short, other] = [await held(account, 10n), await held(account, 90n)];
    await settle(account, short, 50n);
    expect(await entries(short)).toEqual({ 1: "-10", 2: "50", 6: "-40" });
    expect(await billing.balance(account)).toEqual({ available: 0n, held: 90n });
    await settle(account, other, 90n);
    expect(await entries(other)).toEqual({ 1: "-90", 2: "90" });
  });

  test("R-MON-7: a late settlement of a recovered hold takes the available balance, and the rest is the platform's loss", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 60n);
    await billing.age([id], 1);
    const recover = "select ended as count from ledger_recover_holds($1, $2)";
    expect((await billing.pool.query(recover, [account, [id]])).rows).toEqual([{ count: 1 }]);
    expect(await billing.balance(account)).toEqual({ available: 100n, held: 0n });
    const live = await held(account, 70n);
    expect((await settle(account, id, 50n)).settles).toEqual(["settled"]);
    expect(await entries(id)).toEqual({ 1: "-30", 2: "50", 6: "-20" });
    expect(await billing.balance(account)).toEqual({ available: 0n, held: 70n });
    expect((await settle(account, id, 50n)).settles).toEqual(["already"]);
    await settle(account, live, 0n);
    expect(await billing.balance(account)).toEqual({ available: 70n, held: 0n });
  });

  test("a hold that is repeated while open is held once, and refused once it is closed", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 60n);
    const again = { accountId: account, holds: [{ id, amountNanos: 60n }] };
    expect((await billing.apply(again)).holds).toEqual([admitted]);
    expect(await billing.balance(account)).toEqual({ available: 40n, held: 60n });
    await settle(account, id, 10n);
    expect((await billing.apply(again)).holds).toEqual([closed]);
    const released = await held(account, 5n);
    await settle(account, released, 0n);
    const repeated = { id: released, amountNanos: 1_000n };
    expect((await billing.apply({ accountId: account, holds: [repeated] })).holds).toEqual([
      closed,
    ]);
    expect(await billing.balance(account)).toEqual({ available: 90n, held: 0n });
  });

  test("a repeated settlement changes nothing, and its call is written once", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 60n);
    await settle(account, id, 25n);
    expect((await settle(account, id, 25n)).settles).toEqual(["already"]);
    expect((await settle(account, id, 0n)).settles).toEqual(["already"]);
    expect(await billing.balance(account)).toEqual({ available: 75n, held: 0n });
    expect(await billing.count("call", `id = '${id}'`)).toBe(1);
  });

  test("a settlement of an unknown hold charges nothing, reports it, and prevents a later hold of that id", async () => {
    const account = await billing.account(100n);
    const id = newId();
    expect((await settle(account, id, 25n)).settles).toEqual(["unknown"]);
    expect((await settle(account, id, 25n)).settles).toEqual(["already"]);
    expect(await entries(id)).toEqual({});
    expect(await billing.count("call", `id = '${id}' and cost = 0 and held = 0`)).toBe(1);
    const late = { accountId: account, holds: [{ id, amountNanos: 25n }] };
    expect((await billing.apply(late)).holds).toEqual([closed]);
    expect(await billing.balance(account)).toEqual({ available: 100n, held: 0n });
  });

  test("a hold of another account can neither be settled nor taken over", async () => {
    const [owner, other] = [await billing.account(100n), await billing.account(100n)];
    const id = await held(owner, 60n);
    expect((await settle(other, id, 25n)).settles).toEqual(["unknown"]);
    const taken = { accountId: other, holds: [{ id, amountNanos: 25n }] };
    expect((await billing.apply(taken)).holds).toEqual([closed]);
    expect(await billing.balance(other)).toEqual({ available: 100n, held: 0n });
    expect(await billing.count("call", `id = '${id}'`)).toBe(0);
    expect((await settle(owner, id, 25n)).settles).toEqual(["settled"]);
  });

  test("R-MON-4: an account without a balance is refused with 0 available", async () => {
    const accountId = newId();
    const ask = (amountNanos: bigint) => ({ id: newId(), amountNanos });
    const { holds } = await billing.apply({ accountId, holds: [ask(1n), ask(0n)] });
    expect(holds).toEqual([refused(0n), admitted]);
  });

  test("a cost of zero releases: no entry, no trace but the call", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 60n);
    expect((await settle(account, id, 0n)).settles).toEqual(["settled"]);
    expect(await entries(id)).toEqual({});
    expect(await billing.count("hold", `id = '${id}' and state = 3`)).toBe(1);
    expect(await billing.count("call", `id = '${id}'`)).toBe(1);
  });

  test("duplicates within a batch count once", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 60n);
    const [a, b] = [newId(), newId()];
    const record = callRow(id, account, { held: "60" });
    const verdicts = await billing.apply({
      accountId: account,
      settles: [
        { id, costNanos: 10n, record },
        { id, costNanos: 10n, record },
      ],
      holds: [a, a, b, b].map((hold) => ({ id: hold, amountNanos: 20n })),
    });
    expect(verdicts.settles).toEqual(["settled", "settled"]);
    expect(verdicts.holds).toEqual([admitted, admitted, admitted, admitted]);
    expect(await billing.balance(account)).toEqual({ available: 50n, held: 40n });
    // The way for batches that do not fit as a whole.
    const c = newId();
    const tight = [c, c, a, newId()].map((hold) => ({ id: hold, amountNanos: 45n }));
    const { holds } = await billing.apply({ accountId: account, holds: tight });
    expect(holds).toEqual([admitted, admitted, admitted, refused(5n)]);
    expect(await billing.balance(account)).toEqual({ available: 5n, held: 85n });
  });

  test("R-MON-4: holds are admitted in order, and a refusal states the balance available at that moment", async () => {
    const account = await billing.account(100n);
    const ask = [60n, 50n, 30n, 20n].map((amountNanos) => ({ id: newId(), amountNanos }));
    const { holds } = await billing.apply({ accountId: account, holds: ask });
    expect(holds).toEqual([admitted, refused(40n), admitted, refused(10n)]);
  });

  test("money freed by settlements is available to the holds of the same batch", async () => {
    const account = await billing.account(100n);
    const id = await held(account, 100n);
    const { holds } = await billing.apply({
      accountId: account,
      settles: [{ id, costNanos: 10n }],
      holds: [{ id: newId(), amountNanos: 90n }],
    });
    expect(holds).toEqual([admitted]);
    expect(await billing.balance(account)).toEqual({ available: 0n, held: 90n });
  });

  test.each([
    { partition: "a month's", hasMonths: true },
    { partition: "the default", hasMonths: false },
  ])(
    "R-MON-6: entries can be neither changed nor removed, in $partition partition",
    async ({ hasMonths }) => {
      const opened = await openBilling({ hasMonths });
      const account = await opened.account(100n);
      const id = newId();
      await opened.apply({ accountId: account, holds: [{ id, amountNanos: 100n }] });
      await opened.apply({ accountId: account, settles: [{ id, costNanos: 10n }] });
      const attempts = [
        "update ledger_side set amount = amount * 2 where account_id = $1",
        "update ledger_charge set cost = cost * 2 where account_id = $1",
      ];
      for (const table of ["ledger_side", "ledger_charge"]) {
        const found = await opened.pool.query<{ name: string }>(
          `select distinct tableoid::regclass::text as name from ${table}`,
        );
        const names = found.rows.map(({ name }) => name);
        expect(names).toEqual([
          hasMonths ? expect.stringMatching(/_\d{4}_\d\d$/) : `${table}_default`,
        ]);
        for (const name of [table, ...names]) {
          attempts.push(`delete from ${name} where account_id = $1`, `truncate ${name}`);
        }
      }
      for (const text of attempts) {
        const values = text.includes("$1") ? [account] : [];
        await expect(opened.pool.query(text, values)).rejects.toThrow("append-only");
      }
      await opened.expectClean(["I16"]);
      await opened.close();
    },
  );

  test("applyIn belongs to the caller's transaction, of the driver and of the ORM", async () => {
    const account = await billing.account(100n);
    const client = new Client(billing.url);
    await client.connect();
    await client.query("begin");
    await applyIn(client, {
      accountId: account,
      holds: [{ id: newId(), amountNanos: 5n }],
    });
    await client.query("rollback");
    await client.end();
    expect(await billing.balance(account)).toEqual({ available: 100n, held: 0n });
    const orm = await MikroORM.init(ormOptions(billing.url));
    const batch = { accountId: account, holds: [{ id: newId(), amountNanos: 7n }] };
    await expect(applyIn(orm.em.fork(), batch)).rejects.toThrow("transaction");
    await orm.em.fork().transactional(async (em) => {
      expect((await applyIn(em, batch)).holds).toEqual([admitted]);
      expect(await billing.balance(account)).toEqual({ available: 100n, held: 0n });
    });
    await orm.close(true);
    expect(await billing.balance(account)).toEqual({ available: 93n, held: 7n });
  });

  test("the entities match the tables of the migration", async () => {
    const orm = await MikroORM.init(ormOptions(billing.url));
    const drift = await orm.schema.getUpdateSchemaSQL();
    await orm.close(true);
    expect(
      drift.split("\n").filter((line) => /balance|hold|ledger|call|book|price/.test(line)),
    ).toEqual([]);
  });
});
