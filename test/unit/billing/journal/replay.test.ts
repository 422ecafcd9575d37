/** Journals that ended processes left. */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Journal } from "../../../../src/billing/journal/journal.ts";
import type { JournalEntry } from "../../../../src/billing/journal/journal-entry.ts";
import { JournalFiles } from "../../../../src/billing/journal/journal-files.ts";
import { JournalReplay, type ReplayOptions } from "../../../../src/billing/journal/replay.ts";
import { callRow } from "../calls/call-row.ts";
import { newId } from "../../../../src/core/uuid.ts";

let folder: string;
let booked: string[];
let closers: (() => Promise<void>)[];
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "uas-replay-"));
  booked = [];
  closers = [];
});
afterEach(async () => {
  for (const close of closers) await close();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Creates the journal of a killed process. */
async function leave(count: number): Promise<JournalEntry[]> {
  const journal = new Journal({ path: join(folder, new JournalFiles(folder).assign().own) });
  const entries = Array.from({ length: count }, () => entry());
  await Promise.all(entries.map((each) => journal.keep(each)));
  await journal.close();
  return entries;
}

function entry(): JournalEntry {
  const id = newId();
  return { id, accountId: id, cost: "3", record: callRow(id, id) };
}

function replay(options: Partial<ReplayOptions> = {}): JournalReplay {
  const replaying = new JournalReplay({
    folder,
    left: new JournalFiles(folder).assign().left,
    findKnown: async (entries) => new Set(entries.map(({ id }) => id)),
    settle: async ({ id }) => void booked.push(id),
    ...options,
  });
  closers.push(() => replaying.stop());
  replaying.start();
  return replaying;
}

function files(): string[] {
  return fs.readdirSync(folder);
}

const idsOf = (entries: readonly JournalEntry[]): string[] => entries.map(({ id }) => id);

describe("R-MON-2: what a dead process kept", () => {
  test("is booked by the next start, and its file is removed once all of it is durable", async () => {
    const entries = [...(await leave(1_500)), ...(await leave(3))];
    const points: string[] = [];
    replay({ failpoint: (point) => points.push(point) });
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(booked).toEqual(idsOf(entries));
    const each = ["journal.replayed", "journal.removed"];
    expect(points).toEqual([...each, ...each]);
  });

  test("waits for an unreachable database, and survives a stop meanwhile", async () => {
    const entries = await leave(2);
    const away = vi.fn().mockRejectedValue(new Error("away"));
    const first = replay({ findKnown: away });
    await vi.waitFor(() => expect(first.entries).toBe(2));
    await first.stop();
    expect(booked).toEqual([]);
    const never = replay({ settle: () => new Promise(() => {}) });
    await vi.waitFor(() => expect(never.entries).toBe(2));
    await never.stop();
    replay();
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(booked).toEqual(idsOf(entries));
  });

  test("is kept unbooked by a start on another database, and booked by a start on its own", async () => {
    const entries = await leave(3);
    const [known] = idsOf(entries);
    const alarm = vi.fn();
    const other = replay({ alarm, findKnown: async () => new Set(known ? [known] : []) });
    await vi.waitFor(() => expect(alarm).toHaveBeenCalled());
    await other.stop();
    expect(files()).toHaveLength(1);
    expect(booked).toEqual([known]);
    expect(alarm).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("tried again at each start"),
      expect.objectContaining({ entries: 3, unknown: 2 }),
    );
    replay();
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(new Set(booked)).toEqual(new Set(idsOf(entries)));
  });

  test.each(["damaged", "refused"])(
    "that is %s is kept for the operator, and the rest is booked",
    async (what) => {
      const entries = await leave(3);
      const [first = "", ...others] = idsOf(entries);
      const [name = ""] = files();
      if (what === "damaged") {
        const text = fs.readFileSync(join(folder, name), "utf8");
        fs.writeFileSync(join(folder, name), text.replace(first, newId()));
      }
      const alarm = vi.fn();
      const settle = async ({ id }: JournalEntry): Promise<void> => {
        if (id === first) throw new Error("invalid");
        booked.push(id);
      };
      replay({ alarm, settle });
      await vi.waitFor(() => expect(alarm).toHaveBeenCalled());
      expect(files()).toHaveLength(1);
      expect(booked).toEqual(others);
      expect(alarm).toHaveBeenCalledExactlyOnceWith(
        expect.stringContaining("cannot be booked completely"),
        expect.objectContaining(what === "damaged" ? { damagedLines: 1 } : { refused: 1 }),
      );
    },
  );

  test("that ends in the middle of a line is replayed without an alarm", async () => {
    const entries = await leave(3);
    const [name = ""] = files();
    fs.truncateSync(join(folder, name), fs.statSync(join(folder, name)).size - 10);
    const alarm = vi.fn();
    replay({ alarm });
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(booked).toEqual(idsOf(entries.slice(0, 2)));
    expect(alarm).not.toHaveBeenCalled();
  });
});

test("R-MON-2: each file has one process: its own, or the next one after that has ended", async () => {
  await leave(1);
  const [found = ""] = files();
  const all = new JournalFiles(folder);
  const first = all.assign();
  expect(first.left).toEqual([found]);
  const second = all.assign();
  expect(second.left).toEqual([]);
  expect(second.own).not.toBe(first.own);
  all.release(first);
  expect(all.assign().left).toEqual([first.own, found]);
  expect(all.assign().left).toEqual([]);
});

test("an unusable folder is reported to the operator at the start", async () => {
  const file = join(folder, "file");
  fs.writeFileSync(file, "");
  const alarm = vi.fn();
  replay({ alarm, folder: file });
  await vi.waitFor(() =>
    expect(alarm).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("cannot be used"),
      expect.objectContaining({ folder: file }),
    ),
  );
});
