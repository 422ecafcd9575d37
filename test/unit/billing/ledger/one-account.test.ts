/**
 * The statements on the path of calls and tasks read rows of one account only, so that accounts
 * could be spread over several databases (docs/scaling.md). A policy on every table looks at each
 * row that is read, and fails on another account's.
 */
import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLedger, type LedgerWriter } from "../../../../src/billing/ledger/ledger-writer.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { type TableOwner, tableRoles } from "../../../../src/db/table-roles.ts";
import { createEventLog } from "../../../../src/responses/background/event-log.ts";
import { Limiter, type LimitSubject } from "../../../../src/limits/limiter.ts";
import { createResponseStore } from "../../../../src/responses/stored/response-store.ts";
import { digestBytes, digestSecret } from "../../../../src/key/secret.ts";
import { lookUpKey } from "../../../../src/key/look-up.ts";
import { createTaskStore } from "../../../../src/task/store.ts";
import { openSubmit } from "../../task/submit-setup.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";

const role = `one_account_${newId().slice(-12)}`;

/** The account of the tests with its key, and others beside it. */
const own = { keyId: newId(), accountId: "" };
const others: (typeof own)[] = [];

let billing: Billing;
let pool: Pool;
let ledger: LedgerWriter;
let url: string;

beforeAll(async () => {
  billing = await openBilling();
  own.accountId = await billing.account(1_000_000n);
  for (let other = 0; other < 20; other++) {
    others.push({ keyId: newId(), accountId: await billing.account(1_000n) });
  }
  for (const { accountId, keyId } of others) {
    const holds = [{ id: newId(), amountNanos: 10n, keyId }];
    await billing.send({ accountId, holds });
    const extend = { id: holds[0]?.id ?? "", amountNanos: 20n, checkpointNanos: 5n };
    await billing.send({ accountId, extends: [extend] });
  }
  for (const each of [own, ...others]) await setBudgets(each);
  await watchRows();
  const address = new URL(billing.url);
  address.username = role;
  address.password = role;
  url = address.href;
  pool = new Pool({ connectionString: url, max: 1 });
  ledger = createLedger({ url, connections: 1, holdWaitMs, heartbeatMs: 1 << 30 });
});
afterAll(async () => {
  await ledger?.close();
  await pool?.end();
  await billing.pool.query(`drop owned by ${role}`);
  await billing.pool.query(`drop role ${role}`);
  await billing.close();
});

/** Gives the account and its key a budget of a day. */
async function setBudgets({ accountId, keyId }: typeof own): Promise<void> {
  for (const owner of [accountId, keyId]) {
    await billing.pool.query("select ledger_budget_set($1, $2, '{1}', '{10000}', '{UTC}')", [
      accountId,
      owner,
    ]);
  }
}

/** Makes the role, whose reads of rows of other accounts fail. */
async function watchRows(): Promise<void> {
  await billing.pool.query(`
    create role ${role} login password '${role}';
    alter role ${role} set uas.account = '${own.accountId}';
    alter role ${role} set uas.key = '${own.keyId}';
    grant all on all tables in schema public to ${role};
    grant all on all sequences in schema public to ${role};
    create function is_own(account uuid) returns boolean language plpgsql as $$
    begin
      if account::text <> current_setting('uas.account') then
        raise exception 'reads a row of account %', account;
      end if;
      return true;
    end $$;
    -- Limits of models and of vendors' credentials are of the installation.
    create function is_own_subject(subject text) returns boolean language plpgsql as $$
    begin
      if subject ~ '^[ak]'
          and substr(subject, 2) not in (current_setting('uas.account'), current_setting('uas.key')) then
        raise exception 'reads a row of account %', subject;
      end if;
      return true;
    end $$`);
  for (const [table, condition] of await policies()) {
    await billing.pool.query(`alter table ${table} enable row level security`);
    await billing.pool.query(
      `create policy own on ${table} using (${condition}) with check (true)`,
    );
  }
}

/** Each table and partition, with the condition by which a row is of the tests' account. */
async function policies(): Promise<(readonly [table: string, condition: string])[]> {
  return (await tables()).flatMap(({ name, parent }) => {
    const owner = tableRoles[parent]?.owner;
    return owner === undefined ? [] : [[name, conditionOf(owner)] as const];
  });
}

function conditionOf(owner: TableOwner): string {
  if (typeof owner === "string") return `is_own(${owner})`;
  if ("subject" in owner) return `is_own_subject(${owner.subject})`;
  const { parent, parentKey, column } = owner;
  return `is_own((select p.account_id from ${parent} p where p.${parentKey} = ${column} limit 1))`;
}

interface Table {
  readonly name: string;
  /** The table that it is a partition of, or itself. */
  readonly parent: string;
  readonly has_account: boolean;
}

async function tables(): Promise<readonly Table[]> {
  const { rows } = await billing.pool.query<Table>(
    `select c.relname as name, coalesce(p.relname, c.relname) as parent, a.attname is not null as has_account
       from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
         left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`,
  );
  return rows;
}

test("each table has a role, and one with a column account_id has it as its owner", async () => {
  const all = (await tables()).filter(({ name, parent }) => name === parent);
  expect(all.map(({ name }) => name).toSorted()).toEqual(Object.keys(tableRoles).toSorted());
  const unowned = all.filter(({ name, has_account: has }) => {
    return has && tableRoles[name]?.owner !== "account_id";
  });
  expect(unowned).toEqual([]);
});

test("a hold within budgets, its extension with a checkpoint, a settlement and a release read no row of another account", async () => {
  const [kept, freed] = [newId(), newId()];
  const { accountId, keyId } = own;
  for (const id of [kept, freed]) {
    const verdict = await ledger.hold({
      id,
      accountId,
      amountNanos: 100n,
      keyId,
      keyLimitNanos: 10_000n,
    });
    expect(verdict).toMatchObject({ admitted: true });
  }
  const extend = { id: kept, accountId, amountNanos: 200n, checkpointNanos: 100n };
  expect(await ledger.extend(extend)).toMatchObject({ heldNanos: 200n });
  await ledger.settle({ id: kept, accountId, costNanos: 150n, record: callRow(kept, accountId) });
  await ledger.settle({ id: freed, accountId, costNanos: 0n, record: callRow(freed, accountId) });
  expect(await billing.balance(accountId)).toEqual({ available: 999_850n, held: 0n });
  const { rows } = await billing.pool.query<{ spent: string }>(
    "select spent from budget where owner_id in ($1, $2)",
    [accountId, keyId],
  );
  expect(rows).toEqual([{ spent: "150" }, { spent: "150" }]);
});

test("the look-up of a key reads no row of another account", async () => {
  for (const { accountId, keyId } of [own, ...others]) {
    await billing.pool.query("insert into account (id, name) values ($1, 'a')", [accountId]);
    await billing.pool.query(
      "insert into api_key (id, account_id, name, digest, masked) values ($1, $2, 'k', $3, 'uas_')",
      [keyId, accountId, digestBytes(digestSecret(accountId))],
    );
  }
  const { accountId } = own;
  expect(await lookUpKey(pool, digestSecret(accountId))).toMatchObject({ caller: { accountId } });
});

test("the admission of a request to the limits of its key, account and model reads no row of another account", async () => {
  const limits = { rpm: 100, tpm: 10_000, concurrency: 10 };
  const nodeId = newId();
  for (const [each, on] of [
    ...others.map((other) => [other, billing.pool] as const),
    [own, pool],
  ] as const) {
    const subjects: LimitSubject[] = [
      { name: `k${each.keyId}`, kind: "key", limits },
      { name: `a${each.accountId}`, kind: "account", limits },
      { name: "mgpt-4o", kind: "model", limits },
    ];
    const limiter = new Limiter({ pool: on, nodeId });
    const ticket = await limiter.admit({ subjects, tokens: 100 });
    if (!ticket.isAdmitted) throw new Error("it was refused");
    limiter.end(ticket, 10);
    // Sends what is given back.
    await limiter.stop();
  }
});

test("a task's submission, its repetition, its polls and the list of tasks read no row of another account", async () => {
  const theirs = openSubmit(billing.url);
  for (const { accountId } of others) await theirs.submit(accountId, "same");
  await theirs.close();
  await billing.pool.query(
    "insert into task_event (task_id, kind, state) select id, 'test', state from task",
  );
  const { accountId } = own;
  const ours = openSubmit(url);
  const { task } = await ours.submit(accountId, "same");
  expect(await ours.submit(accountId, "same")).toMatchObject({
    task: { id: task.id },
    replayed: true,
  });
  await ours.close();
  const tasks = createTaskStore(pool);
  expect(await tasks.find(task.id, accountId)).toMatchObject({ id: task.id });
  const page = { after: undefined, limit: 100 };
  expect(await tasks.list(page, accountId)).toHaveLength(1);
});

test("stored responses, their items and their events read no row of another account", async () => {
  for (const [{ accountId }, on] of [
    ...others.map((other) => [other, billing.pool] as const),
    [own, pool],
  ] as const) {
    const store = createResponseStore({ pool: on });
    const response = (responseId: string, previousResponseId?: string) => ({
      ...{
        accountId,
        responseId,
        previousResponseId,
        model: "m",
        input: '[{"type":"message","id":"msg_1"}]',
      },
      response: Buffer.from(JSON.stringify({ id: responseId, output: [] })),
    });
    // Of all accounts alike.
    await store.save(response("resp_1"));
    await store.save(response("resp_2", "resp_1"));
    const byVendor = { accountId, model: "m", vendor: "v", itemIds: ["item_1"], bytes: 1 };
    await store.remember({ ...byVendor, responseId: "resp_3" });
    expect(await store.resolve(accountId, "resp_2")).toBeDefined();
    expect(await store.find(accountId, "resp_1")).toMatchObject({ kind: "here" });
    expect((await store.findItems(accountId, ["msg_1"])).size).toBe(1);
    expect(await store.findVendorItems(accountId, ["item_1"])).toHaveLength(1);
    store.countWritten(accountId, 1 << 30);
    await store.trim();
    const events = createEventLog(on);
    const of = { accountId, responseId: "resp_2", taskId: newId() };
    await events.write(of, { last: 0, events: ["event: a\ndata: {}\n\n"] });
    expect(await events.last(of)).toBe(0);
    expect(await events.read(of, -1)).toHaveLength(1);
    expect(await store.delete(accountId, "resp_1")).toBe(true);
  }
});

test.each([
  ...[
    "open_hold",
    "hold_step",
    "hold_checkpoint",
    "budget where owner_id is not null",
    "limit_use",
    "limit_running",
  ],
  ...["task", "task_event", "stored_response", "response_event", "api_key"],
])("the watch works: a statement that reads all of %s fails", async (table) => {
  await expect(pool.query(`select count(*) from ${table}`)).rejects.toThrow(
    "reads a row of account",
  );
});
