import { beforeEach, describe, expect, test } from "vitest";
import { Auditor } from "../../../../src/billing/audit/auditor.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, openBilling } from "../harness.ts";

let billing: Billing;
let auditor: Auditor;

beforeEach(async () => {
  billing = await openBilling();
  auditor = new Auditor(billing.pool);
  return () => billing.close();
});

/**
 * A call that held 60 and cost 25, of a key, with a record. Returns its id. `ageMs`: how long ago
 * it began.
 */
async function call(accountId: string, { keyId = newId(), ageMs = 0 } = {}): Promise<string> {
  const id = aged(newId(), ageMs);
  await billing.apply({ accountId, holds: [{ id, amountNanos: 60n, keyId }] });
  const record = callRow(id, accountId, { held: "60", key_id: keyId });
  await billing.apply({ accountId, settles: [{ id, costNanos: 25n, record }] });
  return id;
}

function aged(id: string, ageMs: number): string {
  const hex = (Date.now() - ageMs).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}${id.slice(13)}`;
}

/** Undoes what a statement did behind the back of the append-only triggers. */
async function tamper(sql: string, values: unknown[] = []): Promise<void> {
  const client = await billing.pool.connect();
  await client.query("begin; set local session_replication_role = replica");
  await client.query(sql, values);
  await client.query("commit");
  client.release();
}

const hourMs = 60 * 60 * 1_000;
const twoHoursMs = 2 * hourMs;

describe("the hourly audit (R-MON-14)", () => {
  test("covers each entry once, in checkpoints that are chained by their hashes", async () => {
    const account = await billing.account(1_000n);
    await call(account, { ageMs: twoHoursMs });
    const first = await auditor.run();
    expect(first).toMatchObject({
      breaches: [],
      isComplete: true,
      checkpoint: { n: 1, previous: "", entries: 4, sums: { 1: "975", 2: "25", 3: "-1000" } },
    });
    expect((await auditor.run())?.checkpoint).toEqual(first?.checkpoint);
    await call(account, { ageMs: twoHoursMs });
    const second = await auditor.run();
    expect(second).toMatchObject({
      breaches: [],
      checkpoint: { n: 2, previous: first?.checkpoint.hash, entries: 6, sums: { 1: "950" } },
    });
    expect(await auditor.runFull()).toMatchObject({ breaches: [], checkpoint: { n: 2 } });
  });

  test("reads no entry that an earlier audit covered", async () => {
    const account = await billing.account(1_000n);
    const id = await call(account, { ageMs: twoHoursMs });
    await auditor.run();
    // In a charge that was audited: only a full audit reads it again.
    await tamper("update ledger_charge set cost = 26 where id = $1", [id]);
    await call(account, { ageMs: twoHoursMs });
    expect((await auditor.run())?.breaches).toEqual([]);
    const rules = (await auditor.runFull())?.breaches.map(({ rule }) => rule);
    expect(rules).toEqual(expect.arrayContaining(["I8", "I14"]));
  });

  test("misses no entry of a transaction that commits after a later one", async () => {
    const [early, late] = [await billing.account(100n), await billing.account(100n)];
    const client = await billing.pool.connect();
    await client.query("begin");
    const text = "select verdict from ledger_book($1, 1::smallint, $2, 50, 'slow', null, null)";
    await client.query(text, [early, newId()]);
    await call(late);
    const run = auditor.run();
    await client.query("commit");
    client.release();
    expect(await run).toMatchObject({ breaches: [] });
    expect(await auditor.run()).toMatchObject({ breaches: [], checkpoint: { sums: { 1: "225" } } });
  });

  test("misses no entry of a transaction that is the newest and still runs", async () => {
    const account = await billing.account(100n);
    const client = await billing.pool.connect();
    await client.query("begin");
    const text = "select verdict from ledger_book($1, 1::smallint, $2, 50, 'newest', null, null)";
    await client.query(text, [account, newId()]);
    // The audit waits for it for some seconds, then leaves its entry to the next audit.
    expect(await auditor.run()).toMatchObject({ breaches: [] });
    await client.query("commit");
    client.release();
    expect(await auditor.run()).toMatchObject({ breaches: [], checkpoint: { sums: { 1: "150" } } });
    expect(await auditor.runFull()).toMatchObject({ breaches: [] });
  });

  test("divides no transaction: a step that ends at any number covers all of its sides", async () => {
    const account = await billing.account(1_000n);
    const id = await call(account, { ageMs: twoHoursMs });
    // The first step ends at number 2,000; each transaction begins there once.
    const book = `select ledger_book('${account}', 1::smallint, '${newId()}', 50, 'bound', null, null)`;
    const vendor = `select ledger_vendor_late('${account}', '${id}', 5)`;
    for (const text of [book, vendor]) {
      await billing.pool.query("select setval('ledger_entry_seq', 1999)");
      await billing.pool.query(text);
    }
    expect(await auditor.run()).toMatchObject({ breaches: [], isComplete: true });
    expect(await billing.count("ledger_side", "seq = 2000")).toBe(4);
  });

  test("gives all sides of a late settlement the same number", async () => {
    const account = await billing.account(1_000n);
    const [id, keyId, node] = [newId(), newId(), newId()];
    await billing.send({ accountId: account, holds: [{ id, amountNanos: 60n, keyId }] }, node);
    await billing.pool.query("update node set ended = now() where id = $1", [node]);
    await billing.pool.query("select ledger_recover_holds($1, $2)", [account, [id]]);
    await billing.send({ accountId: account, settles: [[id, 40n, { held: "60", key_id: keyId }]] });
    const { rows } = await billing.pool.query(
      "select count(*)::int as sides, count(distinct seq)::int as numbers from ledger_side where txn_id = $1",
      [id],
    );
    expect(rows).toEqual([{ sides: 2, numbers: 1 }]);
  });

  test("counts late settlements and corrections of keys", async () => {
    const account = await billing.account(1_000n);
    const [id, keyId, node] = [aged(newId(), twoHoursMs), newId(), newId()];
    await billing.send({ accountId: account, holds: [{ id, amountNanos: 60n, keyId }] }, node);
    await billing.send({
      accountId: account,
      extends: [{ id, amountNanos: 60n, checkpointNanos: 10n }],
    });
    await billing.pool.query("update node set ended = now() where id = $1", [node]);
    await billing.pool.query("select ledger_recover_holds($1, $2)", [account, [id]]);
    expect(await auditor.run()).toMatchObject({ breaches: [], checkpoint: { sums: { 2: "10" } } });
    await billing.send({ accountId: account, settles: [[id, 40n, { held: "60", key_id: keyId }]] });
    expect(await auditor.run()).toMatchObject({ breaches: [], checkpoint: { sums: { 2: "40" } } });
  });

  test("adds up what a budget spends, from audit to audit, and names one that says otherwise (I15)", async () => {
    const account = await billing.account(1_000n);
    await call(account);
    await billing.pool.query("select ledger_budget_set($1, $1, '{3}', '{500}', '{UTC}')", [
      account,
    ]);
    for (let round = 0; round < 3; round++) {
      await call(account);
      expect(await auditor.run()).toMatchObject({ breaches: [] });
    }
    await call(account);
    await billing.pool.query("update budget set spent = spent - 1");
    const report = await auditor.run();
    expect(report?.breaches).toMatchObject([
      { rule: "I15", detail: expect.stringContaining(`of ${account} has spent 124`) as string },
    ]);
  });

  const broken: [rule: string, sql: string][] = [
    ["I1", "update ledger_side set amount = amount - 1 where account = 1"],
    ["I2", "update ledger_charge set paid = paid - 1 where id = $1"],
    ["I8", "update ledger_charge set cost = cost + 1 where id = $1"],
    ["I2", "update balance set available = available + 1"],
    ["I3", "update balance set available = available - 1, held = held + 1"],
    [
      "I5",
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
      "I6",
      "insert into open_hold (id, account_id, amount, expires_at) select id, account_id, held, now() - interval '61 s' from ledger_charge where id = $1",
    ],
    ["I7", "delete from ledger_charge where id = $1"],
    ["I8", "update call set cost = 24 where id = $1"],
    ["I16", "delete from call where id = $1"],
    ["I8", "update call set vendor_cost = 1 where id = $1"],
    ["I10", "update key_spend set spent = spent + 1"],
    ["I11", "insert into hold_checkpoint (hold_id, cost) select $1, 1"],
    ["I11", "update ledger_charge set steps = 1 where id = $1"],
    ["I11", "insert into hold_step (hold_id, n, amount) select $1, 1, 61"],
    ["I12", "update usage_hour set calls = 2"],
    [
      "I15",
      "insert into budget (owner_id, period, account_id, amount, time_zone, start_time, end_time, held) " +
        "select account_id, 1, account_id, 100, 'UTC', now() - interval '1 h', now() + interval '1 h', 1 from hold where id = $1",
    ],
  ];

  test.each(broken)(
    "names %s in what is new, until it is repaired, after: %s",
    async (rule, sql) => {
      const account = await billing.account(100n);
      const id = await call(account, { ageMs: twoHoursMs });
      await tamper(sql, sql.includes("$1") ? [id] : []);
      for (let round = 0; round < 2; round++) {
        const report = await auditor.run();
        expect(report?.breaches.map((breach) => breach.rule)).toContain(rule);
      }
    },
  );

  test("finds wrong sums of an hour after hours without calls, and sums of an hour that has no calls", async () => {
    const account = await billing.account(1_000n);
    await call(account, { ageMs: 30 * hourMs });
    await call(account, { ageMs: 3 * hourMs });
    await tamper("update usage_hour set calls = 2 where hour > now() - interval '5 h'");
    await tamper(
      "insert into usage_hour (account_id, hour, key_id, model, vendor, calls) " +
        "select account_id, hour - interval '10 h', key_id, model, vendor, 1 from usage_hour " +
        "where hour > now() - interval '5 h'",
    );
    const hours = (await auditor.run())?.breaches.map(
      ({ rule, detail }) => `${rule} ${/in the hour (\S+ \S+) /.exec(detail)?.[1]}`,
    );
    const { rows } = await billing.pool.query<{ hour: string }>(
      "select 'I12 ' || hour as hour from usage_hour where hour > now() - interval '20 h' order by hour",
    );
    expect(hours).toEqual(rows.map(({ hour }) => hour));
    expect(hours).toHaveLength(2);
  });

  test("leaves a rest to the next run, and audits in steps of bounded size", async () => {
    const account = await billing.account(1_000n);
    await call(account);
    expect(await auditor.run({ maxMs: 0 })).toMatchObject({
      breaches: [],
      isComplete: false,
      checkpoint: { n: 0 },
    });
    expect(await auditor.run()).toMatchObject({ isComplete: true, checkpoint: { n: 1 } });
  });
});

describe("a database that was taken back (R-MON-14)", () => {
  const tables = [
    ...["balance", "booking", "open_hold", "hold_step", "key_spend", "ledger_charge"],
    ...["ledger_side", "call", "usage_hour", "ledger_checkpoint", "audited_account", "audited_key"],
    ...["budget", "audited_budget"],
  ];

  /** Makes a backup of all that matters here. Returns what restores it. */
  async function backUp(): Promise<() => Promise<void>> {
    const copies = tables.map((table) => `create table backup_${table} as table ${table};`);
    await billing.pool.query(copies.join(""));
    const restores = tables.map(
      (table) => `delete from ${table}; insert into ${table} table backup_${table};`,
    );
    return () => tamper(restores.join(""));
  }

  test("fails an audit that expects a checkpoint noted before, also after new ones have the same number", async () => {
    const account = await billing.account(1_000n);
    const first = (await auditor.run())?.checkpoint;
    const restore = await backUp();
    await call(account);
    const noted = (await auditor.run())?.checkpoint;
    expect(noted?.n).toBe(2);
    for (const expected of [first, noted]) {
      expect(await auditor.run({ expected })).toMatchObject({ breaches: [] });
    }
    await restore();
    const missing = (newest: string) => [
      { rule: "I13", detail: expect.stringContaining(newest) as string },
    ];
    const text = `checkpoint 2:${noted?.hash} is not in the chain: the newest is 1 of `;
    expect((await auditor.run({ expected: noted }))?.breaches).toEqual(missing(text));
    expect((await auditor.runFull({ expected: noted }))?.breaches).toEqual(missing(text));
    await call(account);
    expect(await auditor.run()).toMatchObject({ breaches: [], checkpoint: { n: 2 } });
    const again = (await auditor.run({ expected: noted }))?.breaches;
    expect(again).toEqual(missing("the newest is 2 of "));
    // The part of the chain that the backup contained is still proven.
    expect(await auditor.run({ expected: first })).toMatchObject({ breaches: [] });
  });
});

describe("an accepted finding", () => {
  test("lets later audits continue after its entries, and is in the chain with its reason", async () => {
    const account = await billing.account(1_000n);
    await auditor.run();
    await expect(auditor.accept("why not")).rejects.toThrow("nothing that needs to be accepted");
    await billing.account(50n);
    const shift = async (amount: number): Promise<void> => {
      await tamper(
        `update ledger_side set amount = amount + ${amount} where account = 1 and amount < 60`,
      );
      await tamper(`update balance set available = available + ${amount} where available < 60`);
    };
    await shift(1);
    expect((await auditor.run())?.breaches).toMatchObject([{ rule: "I1" }]);
    const accepted = await auditor.accept("a bug of the importer");
    expect(accepted).toMatchObject({
      n: 2,
      accepted: {
        reason: "a bug of the importer",
        breaches: [expect.stringMatching(/^I1 transaction /) as string],
      },
    });
    await call(account);
    expect(await auditor.run()).toMatchObject({ breaches: [], checkpoint: { n: 3 } });
    await shift(-1);
  });
});

test("checkpoints and audited entries cannot be changed or deleted", async () => {
  await billing.account(1_000n);
  await auditor.run();
  for (const sql of [
    "update ledger_checkpoint set hash = ''",
    "delete from ledger_checkpoint",
    "truncate ledger_checkpoint",
  ]) {
    await expect(billing.pool.query(sql)).rejects.toThrow("append-only");
  }
});
