/** When a settlement goes to the journal, and when its caller hears that it is durable. */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Journal } from "../../../../src/billing/journal/journal.ts";
import type { PendingSettle } from "../../../../src/billing/ledger/account-queue.ts";
import { PendingSettles } from "../../../../src/billing/ledger/pending-settles.ts";
import { callRow } from "../calls/call-row.ts";
import { newId } from "../../../../src/core/uuid.ts";

let parent: string;
let journal: Journal;
let settling: PendingSettles;
let isAway: boolean;
let done: string[];
beforeEach(() => {
  parent = fs.mkdtempSync(join(tmpdir(), "uas-settling-"));
  isAway = false;
  done = [];
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  open();
});
afterEach(async () => {
  await settling.close();
  vi.useRealTimers();
  fs.rmSync(parent, { recursive: true, force: true });
});

function open(options: { readonly entriesMax?: number } = {}): void {
  journal = new Journal({ path: join(parent, "journal", "own.journal"), ...options });
  settling = new PendingSettles({ journal, isAway: () => isAway });
}

function ask(): PendingSettle {
  const id = newId();
  const item = {
    id,
    accountId: id,
    cost: "1",
    record: callRow(id, id),
    sinceMs: performance.now(),
    resolve: () => void done.push(id),
    reject() {},
  };
  settling.add(item);
  return item;
}

/** Waits for so many answers; the clock stands still meanwhile. */
async function answered(count: number): Promise<void> {
  while (done.length < count) await new Promise((resolve) => setImmediate(resolve));
}

test("a database that answers in time leaves nothing to the journal", () => {
  const items = Array.from({ length: 10 }, ask);
  vi.advanceTimersByTime(200);
  for (const { id } of items) settling.delete(id);
  vi.advanceTimersByTime(1_000);
  expect(settling.size).toBe(0);
  expect(fs.readdirSync(parent)).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test("R-MON-2: a settlement that the database has not taken after 250 ms is journaled, and durable for its caller", async () => {
  const first = ask();
  vi.advanceTimersByTime(200);
  const second = ask();
  vi.advanceTimersByTime(50);
  await vi.waitFor(() => expect(done).toEqual([first.id]));
  expect(settling.size).toBe(2);
  settling.delete(second.id);
  settling.delete(first.id);
  expect(settling.size).toBe(0);
  expect(journal.stats().entries).toBe(0);
});

test("R-MON-2: settlements go to the journal at once where the database is known to be away", async () => {
  const before = ask();
  isAway = true;
  const after = ask();
  await answered(1);
  expect(done).toEqual([after.id]);
  settling.journalOverdue();
  await answered(2);
  expect(done).toEqual([after.id, before.id]);
});

test("settlements that do not fit the journal wait for the database, and are journaled once there is room", async () => {
  open({ entriesMax: 1 });
  isAway = true;
  const kept = ask();
  const waiting = ask();
  await vi.waitFor(() => expect(done).toEqual([kept.id]));
  vi.advanceTimersByTime(1_000);
  expect(done).toEqual([kept.id]);
  expect([...settling.unsafe]).toEqual([waiting]);
  settling.delete(kept.id);
  vi.advanceTimersByTime(50);
  await vi.waitFor(() => expect(done).toEqual([kept.id, waiting.id]));
  expect([...settling.unsafe]).toEqual([]);
});

test("a settlement whose journal write failed waits for the database again", async () => {
  fs.writeFileSync(join(parent, "journal"), "not a folder");
  isAway = true;
  const item = ask();
  expect([...settling.unsafe]).toEqual([]);
  await vi.waitFor(() => expect([...settling.unsafe]).toEqual([item]));
  fs.rmSync(join(parent, "journal"));
  vi.advanceTimersByTime(1_000);
  await vi.waitFor(() => expect(done).toEqual([item.id]));
});

test("closing journals all settlements, whether the database is unreachable or slow", async () => {
  const items = Array.from({ length: 20 }, ask);
  await settling.close();
  expect(done).toEqual(items.map(({ id }) => id));
  expect([...settling.unsafe]).toEqual([]);
  expect(fs.readdirSync(join(parent, "journal"))).toHaveLength(1);
});

test("settlements wait for the database where there is no journal", async () => {
  settling = new PendingSettles({ journal: undefined, isAway: () => true });
  const item = ask();
  expect(vi.getTimerCount()).toBe(0);
  settling.journalOverdue();
  expect([...settling.unsafe]).toEqual([item]);
  settling.delete(item.id);
  expect(settling.size).toBe(0);
});
