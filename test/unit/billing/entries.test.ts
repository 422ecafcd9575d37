/** The list of an account's movements, narrowed to kinds and to a time. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { ListLedgerEntriesRequest } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { createBillingService } from "../../../src/billing/service.ts";
import { operator } from "../../../src/core/caller.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { newId } from "../../../src/core/uuid.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { rpcs } from "./rpcs.ts";

const invalid = expect.objectContaining({ code: ErrorCode.INVALID_REQUEST });

/** Ten days, a movement every 43.2 seconds, from a midnight on. */
const rows = 20_000;
const fromMs = Date.UTC(2026, 4, 1);
const dayMs = 86_400_000;
const spanMs = 10 * dayMs;

/**
 * A movement each, every thousandth a grant (5), the one after it a refund (3), all others charges
 * (2): of two accounts by turns, so that both have the same.
 */
const fill = `
  with filled as (
    select (left(hex, 8) || '-' || right(hex, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id,
        ($1::uuid[])[1 + n % 2] as account_id,
        case n / 2 % 1000 when 0 then 5 when 1 then 3 else 2 end as kind
      from (select n, lpad(to_hex($2::bigint + n / 2 * $3::bigint), 12, '0') as hex
        from generate_series(0, 2 * $4::int - 1) n) numbered
  ), charged as (
    insert into ledger_charge (id, account_id, seq, cost, paid, balance_after, held)
      select id, account_id, 1, 1, 1, 0, 1 from filled where kind = 2
  )
  insert into ledger_side (txn_id, account, account_id, kind, amount, seq)
    select id, 1, account_id, kind, 1, 1 from filled where kind <> 2`;

let database: TestDatabase;
let pool: Pool;
const accountId = newId();

beforeAll(async () => {
  database = await createTestDatabase();
  // A single connection, so that its statistics cover all reads.
  pool = new Pool({ connectionString: database.url, max: 1 });
  await pool.query(fill, [[accountId, newId()], fromMs, spanMs / rows, rows]);
  // The server does this by itself, some time after so many rows.
  await pool.query("vacuum analyze ledger_charge, ledger_side");
});

afterAll(async () => {
  await pool.end();
  await database.close();
});

const ops = () =>
  rpcs(
    createBillingService({ clock: systemClock, pool, accountExists: async () => true }),
    operator,
  );

/** Every movement that fits, page by page. */
async function all(
  filter: Partial<Pick<ListLedgerEntriesRequest, "kinds" | "fromTime" | "toTime">>,
) {
  const entries = [];
  let pageToken = "";
  do {
    const page = await ops().listLedgerEntries({ accountId, pageSize: 7, ...filter, pageToken });
    entries.push(...page.entries);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return entries;
}

/** Returns the number of index entries and rows of the ledger that were read so far. */
async function readSoFar(): Promise<number> {
  await pool.query("select pg_stat_force_next_flush()");
  const { rows: counted } = await pool.query<{ count: string }>(
    `select (select sum(seq_tup_read) from pg_stat_user_tables where relname ~ '^ledger_(charge|side)_')
       + (select sum(idx_tup_read) from pg_stat_user_indexes where relname ~ '^ledger_(charge|side)_')
       as count`,
  );
  return Number(counted[0]?.count);
}

test("R-CON-1: entries of some kinds are listed completely and in order, however many charges lie between", async () => {
  const before = await readSoFar();
  const grants = await all({ kinds: [LedgerKind.PROMO] });
  const others = await all({ kinds: [LedgerKind.PROMO, LedgerKind.REFUND, LedgerKind.TOP_UP] });
  const read = (await readSoFar()) - before;
  expect(grants.map(({ kind }) => kind)).toEqual(Array(20).fill(LedgerKind.PROMO));
  expect(others).toHaveLength(40);
  const ids = others.map(({ transactionId }) => transactionId);
  expect(ids).toEqual(ids.toSorted().toReversed());
  expect(new Set(ids).size).toBe(40);
  expect(read).toBeLessThan(1_000);
  const charges = { accountId, kinds: [LedgerKind.CHARGE], pageSize: 1_000 };
  expect((await ops().listLedgerEntries(charges)).entries).toHaveLength(1_000);
});

test("R-CON-1: a time range includes its start and excludes its end", async () => {
  const before = await readSoFar();
  const time = (ms: number) => timestampFromMs(ms);
  const [from, to] = [fromMs + dayMs, fromMs + dayMs + 10 * (spanMs / rows)];
  const range = { fromTime: time(from), toTime: time(to) };
  const found = await all(range);
  expect(found).toHaveLength(10);
  expect(found.at(-1)?.transactionId.slice(0, 13)).toBe(idTime(from));
  const grants = await all({ ...range, kinds: [LedgerKind.PROMO] });
  expect(grants.map(({ transactionId }) => transactionId.slice(0, 13))).toEqual([idTime(from)]);
  expect(await all({ toTime: time(fromMs) })).toEqual([]);
  expect(await all({ fromTime: time(fromMs + spanMs) })).toEqual([]);
  expect((await readSoFar()) - before).toBeLessThan(1_000);
});

/** The first characters of an id of this moment. */
function idTime(ms: number): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

test("an unknown kind and an unspecified kind are refused by name", async () => {
  for (const kind of [LedgerKind.UNSPECIFIED, 99 as LedgerKind]) {
    const asked = ops().listLedgerEntries({ accountId, kinds: [LedgerKind.CHARGE, kind] });
    await expect(asked).rejects.toEqual(invalid);
    await expect(asked).rejects.toMatchObject({ param: "kinds" });
  }
});
