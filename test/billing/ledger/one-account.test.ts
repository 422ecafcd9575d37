/**
 * The statements on the path of a call read rows of one account only, so that accounts could be spread over several
 * databases (docs/scaling.md). A policy on every table looks at each row that is read, and fails on another account's.
 */
import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLedger, type LedgerWriter } from "../../../src/billing/ledger/ledger-writer.ts";
import { newId } from "../../../src/core/uuid.ts";
import { digestBytes, digestSecret } from "../../../src/key/secret.ts";
import { lookUpKey } from "../../../src/key/authenticate.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";

const role = `one_account_${newId().slice(-12)}`;

let billing: Billing;
let accountId: string;
let pool: Pool;
let ledger: LedgerWriter;

beforeAll(async () => {
  billing = await openBilling();
  accountId = await billing.account(1_000_000n);
  for (let other = 0; other < 20; other++) {
    const otherId = await billing.account(1_000n);
    await billing.send({ accountId: otherId, holds: [{ id: newId(), amountNanos: 10n }] });
  }
  await watchRows(accountId);
  const url = new URL(billing.url);
  url.username = role;
  url.password = role;
  pool = new Pool({ connectionString: url.href, max: 1 });
  ledger = createLedger({ url: url.href, connections: 1, holdWaitMs, heartbeatMs: 1 << 30 });
});
afterAll(async () => {
  await ledger?.close();
  await pool?.end();
  await billing.pool.query(`drop owned by ${role}`);
  await billing.pool.query(`drop role ${role}`);
  await billing.close();
});

/** Makes the role, whose reads of rows of other accounts fail. */
async function watchRows(account: string): Promise<void> {
  await billing.pool.query(`
    create role ${role} login password '${role}';
    alter role ${role} set uas.account = '${account}';
    grant all on all tables in schema public to ${role};
    grant all on all sequences in schema public to ${role};
    create function is_own(account uuid) returns boolean language plpgsql as $$
    begin
      if account::text <> current_setting('uas.account') then
        raise exception 'reads a row of account %', account;
      end if;
      return true;
    end $$;
    do $$
    declare t record;
    begin
      for t in
        select c.oid::regclass as name, case when a.attname is null then 'id' else 'account_id' end as owner
        from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
          and (a.attname is not null or c.relname = 'account')
      loop
        execute format('alter table %s enable row level security', t.name);
        execute format('create policy own on %s using (is_own(%I)) with check (true)', t.name, t.owner);
      end loop;
    end $$`);
}

test("a hold, its extension with a checkpoint, a settlement and a release read no row of another account", async () => {
  const [kept, freed] = [newId(), newId()];
  const keyId = newId();
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
  expect(await ledger.extend({ id: kept, accountId, amountNanos: 200n })).toMatchObject({
    heldNanos: 200n,
  });
  await ledger.settle({ id: kept, accountId, costNanos: 150n, record: callRow(kept, accountId) });
  await ledger.settle({ id: freed, accountId, costNanos: 0n, record: callRow(freed, accountId) });
  expect(await billing.balance(accountId)).toEqual({ available: 999_850n, held: 0n });
});

test("the look-up of a key reads no row of another account", async () => {
  for (const owner of [accountId, newId(), newId()]) {
    await billing.pool.query("insert into account (id, name) values ($1, 'a')", [owner]);
    await billing.pool.query(
      "insert into api_key (id, account_id, name, digest, masked) values ($1, $2, 'k', $3, 'uas_')",
      [newId(), owner, digestBytes(digestSecret(owner))],
    );
  }
  expect(await lookUpKey(pool, digestSecret(accountId))).toMatchObject({ caller: { accountId } });
});

test("the watch works: a statement that reads all accounts fails", async () => {
  await expect(pool.query("select count(*) from open_hold")).rejects.toThrow(
    "reads a row of account",
  );
});
