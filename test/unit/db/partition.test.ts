import * as fc from "fast-check";
import { Pool } from "pg";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { ensurePartitions, partitionBounds, partitionName } from "../../../src/db/partition.ts";
import { createEmptyDatabase, type TestDatabase } from "../../support/database.ts";
import { newId } from "../../../src/core/uuid.ts";

const now = new Date("2026-11-30T23:59:59.999Z");
const tables = [{ table: "event", column: "id" }];
let scratch: TestDatabase;
let pool: Pool;

beforeEach(async () => {
  scratch = await createEmptyDatabase();
  pool = new Pool({ connectionString: scratch.url, max: 4 });
  await pool.query(`
    create table event (id uuid primary key, note text not null check (note <> ''))
      partition by range (id);
    create table event_default partition of event default;
    create index event_note_index on event (note);
    create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'append only'; end $$;
    create trigger event_append_only before update or delete on event
      for each row execute function refuse();`);
});

afterEach(async () => {
  await pool.end();
  await scratch.close();
});

/** A UUIDv7 of a moment. */
function idAt(time: string): string {
  const hex = Date.parse(time).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}${newId().slice(13)}`;
}

async function home(id: string): Promise<unknown> {
  const { rows } = await pool.query(
    "select tableoid::regclass::text as home from event where id=$1",
    [id],
  );
  return rows[0]?.home;
}

test("a month's bounds hold exactly the ids of that month", () => {
  expect(partitionName("call", new Date("2026-01-31T23:59:59.999Z"))).toBe("call_2026_01");
  const first = Date.UTC(2000, 0);
  fc.assert(
    fc.property(fc.integer({ min: first, max: first + 4e12 }), (time) => {
      const moment = new Date(time).toISOString();
      const { from, to } = partitionBounds(new Date(time));
      const before = partitionBounds(new Date(Date.parse(`${moment.slice(0, 7)}-01T00:00Z`) - 1));
      const id = idAt(moment);
      expect(from <= id && id < to).toBe(true);
      expect(before.to).toBe(from);
    }),
  );
});

test("this month and the next three have a partition; repeating changes nothing", async () => {
  const made = await ensurePartitions(pool, tables, { now });
  expect(made).toEqual(["event_2026_11", "event_2026_12", "event_2027_01", "event_2027_02"]);
  expect(await ensurePartitions(pool, tables, { now })).toEqual([]);
  const later = await ensurePartitions(pool, tables, { now: new Date("2026-12-01T00:00:00Z") });
  expect(later).toEqual(["event_2027_03"]);
});

test("rows go to the partition of their id's month, others to the default one", async () => {
  await ensurePartitions(pool, tables, { now });
  const ids = {
    event_2026_11: idAt("2026-11-30T23:59:59.999Z"),
    event_2026_12: idAt("2026-12-01T00:00:00.000Z"),
    event_default: idAt("2027-03-01T00:00:00.000Z"),
  };
  for (const [expected, id] of Object.entries(ids)) {
    await pool.query("insert into event values ($1, 'x')", [id]);
    expect(await home(id)).toBe(expected);
  }
});

test("rows already in the default partition are moved, and stay append-only", async () => {
  const [inside, outside] = [idAt("2026-11-05T00:00:00Z"), idAt("2026-10-05T00:00:00Z")];
  await pool.query("insert into event values ($1, 'x'), ($2, 'y')", [inside, outside]);
  await ensurePartitions(pool, tables, { now });
  expect(await home(inside)).toBe("event_2026_11");
  expect(await home(outside)).toBe("event_default");
  for (const id of [inside, outside]) {
    await expect(pool.query("delete from event where id = $1", [id])).rejects.toThrow(
      "append only",
    );
  }
  await expect(pool.query("insert into event values ($1, 'z')", [inside])).rejects.toThrow(
    "unique",
  );
});

test("two nodes at once make each partition once", async () => {
  const made = await Promise.all([1, 2, 3, 4].map(() => ensurePartitions(pool, tables, { now })));
  expect(made.flat().toSorted()).toEqual([
    "event_2026_11",
    "event_2026_12",
    "event_2027_01",
    "event_2027_02",
  ]);
});

test("R-MON-2: rows that are being added meanwhile are never refused, and none is lost", async () => {
  // One reads first in its transaction: a lock in another order would deadlock with it.
  const done = new AbortController();
  const months = ["2026-11-30", "2026-12-05", "2027-01-05", "2027-02-05"];
  const writer = async (reads: boolean): Promise<number> => {
    const client = await pool.connect();
    let rows = 0;
    for (; !done.signal.aborted; rows++) {
      if (rows === 20) started();
      const id = idAt(`${months[rows % 4]}T00:00:00Z`);
      if (reads) await client.query("begin; select count(*) from event");
      await client.query("insert into event values ($1, 'x')", [id]);
      if (reads) await client.query("commit");
    }
    client.release();
    return rows;
  };
  let started = () => {};
  const going = new Promise<void>((resolve) => {
    started = resolve;
  });
  const writers = [writer(true), writer(false), writer(false)];
  await going;
  const made = await ensurePartitions(pool, tables, { now }).finally(() => {
    done.abort();
  });
  const written = (await Promise.all(writers)).reduce((sum, rows) => sum + rows, 0);
  expect(made).toHaveLength(4);
  const { rows } = await pool.query("select count(*)::int as count from event");
  expect(rows).toEqual([{ count: written }]);
  const rest = await pool.query("select from event_default");
  expect(rest.rowCount).toBe(0);
});

test("a table that stays locked is an error, and the next run makes the partition", async () => {
  const holder = await pool.connect();
  await holder.query("begin; lock table event in access exclusive mode");
  await expect(ensurePartitions(pool, tables, { now })).rejects.toThrow("lock timeout");
  await holder.query("rollback");
  holder.release();
  expect(await ensurePartitions(pool, tables, { now })).toHaveLength(4);
});

test("a connection that breaks between two statements is an error, and the process goes on", async () => {
  const client = await pool.connect();
  const query = client.query.bind(client);
  const pid = await query<{ pid: number }>("select pg_backend_pid() as pid");
  const ended = new Promise((resolve) => client.once("end", resolve));
  const breaksAfter = async (text: string): Promise<unknown> => {
    const result = await query(text);
    await pool.query("select pg_terminate_backend($1)", [pid.rows[0]?.pid]);
    // No caller waits for an answer of this connection when it breaks.
    await ended;
    return result;
  };
  Object.assign(client, { query: breaksAfter });
  // The pool's own statements bypass this: only reserved connections use it.
  const breaking = Object.create(pool, {
    connect: { value: async () => client },
    query: { value: pool.query.bind(pool) },
  }) as Pool;
  await expect(ensurePartitions(breaking, tables, { now })).rejects.toThrow("connection error");
});

test("the months are those of the database's clock, whatever the clock of the process says", async () => {
  const { rows } = await pool.query<{ now: Date }>("select clock_timestamp() as now");
  const right = partitionName("event", rows[0]?.now ?? new Date(0));
  for (const days of [-400, 400]) {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + days * 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());
    await ensurePartitions(pool, tables, { monthsAhead: 0 });
    vi.useRealTimers();
  }
  const made = await pool.query<{ name: string }>(
    "select relname as name from pg_class where relname like 'event_2%' and relkind = 'r'",
  );
  expect(made.rows.map(({ name }) => name)).toEqual([right]);
});
