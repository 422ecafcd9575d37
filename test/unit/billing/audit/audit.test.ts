import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { auditLedger } from "../../../../src/billing/audit/audit.ts";
import { createLedger } from "../../../../src/billing/ledger/ledger-writer.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

describe("R-MON-6: the audit", () => {
  let billing: Billing;
  beforeAll(async () => void (billing = await openBilling()));
  afterAll(() => billing.close());

  test("finds nothing while calls are running", async () => {
    const account = await billing.account(1_000n);
    const ledger = createLedger({ url: billing.url, connections: 1, holdWaitMs });
    const state = { isRunning: true };
    const callers = Array.from({ length: 10 }, async () => {
      while (state.isRunning) {
        const id = newId();
        const verdict = await ledger.hold({ id, accountId: account, amountNanos: 10n, keyId: "" });
        if (!verdict.admitted) return;
        const record = callRow(id, account, { held: "10" });
        await ledger.settle({ id, accountId: account, costNanos: 1n, record });
      }
    });
    for (let round = 0; round < 30; round++) await billing.expectClean();
    state.isRunning = false;
    await Promise.all(callers);
    await ledger.close();
    await billing.expectClean();
  });

  /** Manipulations of one settled call (60 held, 25 charged), and the rule that each breaks. */
  const tampered: [rule: string, sql: string][] = [
    [
      "I1",
      "update ledger_side set amount = amount - 1 where account = 1 and account_id = (select account_id from hold where id = $1)",
    ],
    [
      "I1",
      "delete from ledger_side where account = 3 and account_id = (select account_id from hold where id = $1)",
    ],
    ["I2", "update ledger_charge set paid = paid - 1 where id = $1"],
    ["I4", "update ledger_charge set paid = paid + 1 where id = $1"],
    ["I8", "update ledger_charge set cost = cost + 1 where id = $1"],
    [
      "I2",
      "update balance set available = available + 1 where account_id = (select account_id from hold where id = $1)",
    ],
    ["I2", "delete from balance where account_id = (select account_id from hold where id = $1)"],
    [
      "I3",
      "update balance set available = available - 1, held = held + 1 where account_id = (select account_id from hold where id = $1)",
    ],
    [
      "I3",
      "insert into open_hold (id, account_id, amount, expires_at) select id, account_id, held, now() from ledger_charge where id = $1",
    ],
    [
      "I5",
      "insert into ledger_side (txn_id, account_id, amount, account, kind, call_id, seq) " +
        "select gen_random_uuid(), account_id, 0, 2, 6, id, nextval('ledger_entry_seq') from ledger_charge where id = $1",
    ],
    [
      "I5",
      "insert into ledger_side (txn_id, account_id, amount, account, kind, seq) " +
        "select gen_random_uuid(), account_id, 1, 2, 2, nextval('ledger_entry_seq') from ledger_charge where id = $1",
    ],
    [
      "I5",
      "update ledger_side set kind = 2 where account = 1 and account_id = (select account_id from hold where id = $1)",
    ],
    [
      "I6",
      "insert into open_hold (id, account_id, amount, expires_at) select id, account_id, held, now() - interval '61 s' from ledger_charge where id = $1",
    ],
    [
      "I7",
      "with ended as (delete from ledger_charge where id = $1 returning *) " +
        "insert into open_hold (id, account_id, amount, expires_at) select id, account_id, held, now() from ended",
    ],
    ["I7", "delete from ledger_charge where id = $1"],
    ["I8", "update call set cost = 24 where id = $1"],
    ["I16", "delete from call where id = $1"],
    ["I9", "insert into booking select account_id, 'r', 3, id, 26, id from hold where id = $1"],
    [
      "I5",
      "insert into open_hold (id, account_id, amount, expires_at) select id, account_id, held, now() from ledger_charge where id = $1",
    ],
    [
      "I6",
      "with dead as (insert into node (id, name, seen_time) select $1, 'dead', now() - interval '61 s' returning id) " +
        "insert into open_hold (id, account_id, amount, expires_at, node_id) " +
        "select c.id, c.account_id, c.held, now() + interval '1 h', c.id from ledger_charge c join dead using (id)",
    ],
    ["I8", "update call set vendor_cost = 1 where id = $1"],
    [
      "I10",
      "insert into key_spend (key_id, account_id, spent) select id, account_id, 1 from hold where id = $1",
    ],
    ["I10", "update ledger_charge set key_id = id where id = $1"],
    ["I11", "insert into hold_checkpoint (hold_id, cost) select id, 1 from hold where id = $1"],
    ["I11", "update ledger_charge set steps = 1 where id = $1"],
    [
      "I12",
      "update usage_hour u set calls = 2 from hold h where h.id = $1 and u.account_id = h.account_id",
    ],
    [
      "I12",
      "delete from usage_hour u using hold h where h.id = $1 and u.account_id = h.account_id",
    ],
    [
      "I15",
      "insert into budget (owner_id, period, account_id, amount, time_zone, start_time, end_time, spent) " +
        "select account_id, 1, account_id, 100, 'UTC', now() - interval '1 h', now() + interval '1 h', 1 from hold where id = $1",
    ],
    ["I11", "insert into hold_step (hold_id, n, amount) select id, 1, 61 from hold where id = $1"],
  ];

  test.each(tampered)("the audit names %s after this tampering: %s", async (rule, sql) => {
    const account = await billing.account(100n);
    const id = newId();
    await billing.apply({ accountId: account, holds: [{ id, amountNanos: 60n }] });
    const record = callRow(id, account, { held: "60" });
    await billing.apply({ accountId: account, settles: [{ id, costNanos: 25n, record }] });
    await billing.expectClean();
    const { rows } = await billing.pool.query<{ id: string }>(
      "select txn_id as id from ledger_entry where account_id = $1 and kind = 1",
      [account],
    );
    const client = await billing.pool.connect();
    await client.query("begin");
    for (const table of ["ledger_charge", "ledger_side"]) {
      await client.query(`alter table ${table} disable trigger user`);
      await client.query(`alter table ${table}_default disable trigger user`);
    }
    await client.query(sql, [id]);
    const breaches = await auditLedger(client);
    await client.query("rollback");
    client.release();
    expect(breaches.map((breach) => breach.rule)).toContain(rule);
    const [first] = breaches.filter((breach) => breach.rule === rule);
    expect([id, account, rows[0]?.id ?? ""].some((known) => first?.detail.includes(known))).toBe(
      true,
    );
  });
});
