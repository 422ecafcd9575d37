import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Anchor, createAnchorFile } from "../../../src/billing/audit/anchor.ts";
import { Auditor } from "../../../src/billing/audit/auditor.ts";
import { newId } from "../../../src/core/uuid.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, openBilling } from "../harness.ts";

let billing: Billing;
let folder: string;

beforeEach(async () => {
  billing = await openBilling();
  folder = await mkdtemp(join(tmpdir(), "uas-anchor-"));
  return async () => {
    await billing.close();
    await rm(folder, { recursive: true, force: true });
  };
});

function openAuditor(places = [createAnchorFile(join(folder, "checkpoint.json"))]) {
  const alarm = vi.fn();
  const anchor = new Anchor({ pool: billing.pool, places, alarm });
  return { anchor, alarm, auditor: new Auditor(billing.pool, anchor) };
}

/** A call that held 60 and cost 25, of a key, with a record. Returns its id. `ageMs`: how long ago it began. */
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
    const { auditor } = openAuditor();
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
    const { auditor } = openAuditor();
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
    const { auditor } = openAuditor();
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

  test("divides no transaction: a step that ends at any number covers all of its sides", async () => {
    const { auditor } = openAuditor();
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
    const { auditor } = openAuditor();
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
    const { auditor } = openAuditor();
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
      const { auditor } = openAuditor();
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
    const { auditor } = openAuditor();
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
    const { auditor } = openAuditor();
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

  test("fails every audit, which says what is missing and what to do, until an operator accepts it", async () => {
    const { auditor } = openAuditor();
    const account = await billing.account(1_000n);
    await auditor.run();
    const restore = await backUp();
    await call(account);
    await auditor.run();
    const kept = await readFile(join(folder, "checkpoint.json"), "utf8");
    await restore();
    for (let round = 0; round < 2; round++) {
      const report = await auditor.run();
      expect(report?.breaches).toEqual([
        {
          rule: "I13",
          detail: expect.stringMatching(
            /^checkpoint 2 of .*checkpoint\.json names, is not in the database: its newest is checkpoint 1 .*uas ledger accept --reason/,
          ) as string,
        },
      ]);
      expect(report?.checkpoint.n).toBe(1);
    }
    expect(await readFile(join(folder, "checkpoint.json"), "utf8")).toBe(kept);
    const accepted = await auditor.accept("restored the backup of 09:00");
    expect(accepted).toMatchObject({ n: 3, accepted: { reason: "restored the backup of 09:00" } });
    await call(account);
    expect(await auditor.runFull()).toMatchObject({ breaches: [], checkpoint: { n: 4 } });
  });

  test("is found by the newest acknowledged booking, also before the first audit", async () => {
    const { auditor, anchor, alarm } = openAuditor();
    const [kept, lost] = [newId(), newId()];
    const account = await billing.account();
    const text = "select verdict from ledger_book($1, 1::smallint, $2, 50, 'r', null, null)";
    await billing.pool.query(text, [account, kept]);
    await anchor.keepBooking(kept);
    expect(await auditor.run()).toMatchObject({ breaches: [] });
    await anchor.keepBooking(lost);
    const report = await auditor.run();
    expect(report?.breaches.map(({ detail }) => detail)).toEqual([
      expect.stringContaining(`transaction ${lost}, which was acknowledged at `),
    ]);
    // A later booking must not hide what is lost.
    await anchor.keepBooking(kept);
    expect(alarm.mock.calls).toMatchObject([["the database has lost bookings", {}]]);
    expect((await auditor.run())?.breaches).toHaveLength(1);
    await auditor.accept("known");
    expect((await auditor.run())?.breaches).toEqual([]);
  });

  test("is found although new checkpoints have reached the same number", async () => {
    const { auditor } = openAuditor();
    const account = await billing.account(1_000n);
    await auditor.run();
    const restore = await backUp();
    await call(account);
    await auditor.run();
    await restore();
    // Another installation goes on with the restored database, and keeps its copy elsewhere.
    const elsewhere = openAuditor([]);
    await call(account);
    await elsewhere.auditor.run();
    expect((await auditor.run())?.breaches).toMatchObject([{ rule: "I13" }]);
  });

  test("is not accepted where nothing is missing, and a damaged copy is no proof", async () => {
    const { auditor } = openAuditor();
    await billing.account(1_000n);
    await auditor.run();
    await expect(auditor.accept("why not")).rejects.toThrow("nothing that needs to be accepted");
    await writeFile(join(folder, "checkpoint.json"), "{");
    expect(await auditor.run()).toMatchObject({ breaches: [], checkpoint: { n: 1 } });
    expect(JSON.parse(await readFile(join(folder, "checkpoint.json"), "utf8"))).toMatchObject({
      checkpoint: { n: 1 },
    });
  });

  test("keeps every copy at the newest checkpoint, whichever process audited", async () => {
    const other = await mkdtemp(join(tmpdir(), "uas-anchor-"));
    onTestFinished(() => rm(other, { recursive: true, force: true }));
    const [here, there] = [
      openAuditor(),
      openAuditor([createAnchorFile(join(other, "checkpoint.json"))]),
    ];
    await billing.account(1_000n);
    await here.auditor.run();
    await there.auditor.run();
    const names = [folder, other].map((each) => join(each, "checkpoint.json"));
    const [first, second] = await Promise.all(names.map((name) => readFile(name, "utf8")));
    expect(first).toBe(second);
  });
});

test("checkpoints and audited entries cannot be changed or deleted", async () => {
  const { auditor } = openAuditor();
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
