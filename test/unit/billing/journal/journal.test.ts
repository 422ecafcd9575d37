/** The settlement journal: its text and its file. */
import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Journal, type JournalOptions } from "../../../../src/billing/journal/journal.ts";
import {
  decodeJournal,
  encodeEntry,
  type JournalEntry,
} from "../../../../src/billing/journal/journal-entry.ts";
import { callRow } from "../calls/call-row.ts";
import { newId } from "../../../../src/core/uuid.ts";

let parent: string;
let folder: string;
let path: string;
let journals: Journal[];
beforeEach(() => {
  parent = fs.mkdtempSync(join(tmpdir(), "uas-journal-"));
  folder = join(parent, "journal");
  path = join(folder, "own.journal");
  journals = [];
});
afterEach(async () => {
  for (const journal of journals) await journal.close();
  fs.rmSync(parent, { recursive: true, force: true });
});

function open(options: Partial<JournalOptions> = {}): Journal {
  const journal = new Journal({ path, ...options });
  journals.push(journal);
  return journal;
}

function entry(cost = "7", more: object = {}): JournalEntry {
  const id = newId();
  const accountId = newId();
  return { id, accountId, cost, record: callRow(id, accountId, { cost, ...more }) };
}

function names(): string[] {
  return fs.existsSync(folder) ? fs.readdirSync(folder).toSorted() : [];
}

function readAll(): JournalEntry[] {
  return names().flatMap((name) => decodeJournal(fs.readFileSync(join(folder, name))).entries);
}

/** Any entry, with texts of any kind. */
const anyEntry = fc
  .tuple(fc.string({ unit: "binary" }), fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }))
  .map(([model, cost]) => entry(cost.toString(), { model: model.toWellFormed() }));

const anyEntries = fc.array(anyEntry, { minLength: 1, maxLength: 6 });

describe("the text of a journal", () => {
  test("R-MON-2: a file that is cut anywhere yields a prefix of its entries, and no line counts as damaged", () => {
    fc.assert(
      fc.property(anyEntries, fc.double({ min: 0, max: 1, noNaN: true }), (entries, where) => {
        const lines = entries.map(encodeEntry);
        const bytes = Buffer.from(lines.join(""));
        const cut = Math.round(where * bytes.length);
        const found = decodeJournal(bytes.subarray(0, cut));
        let whole = 0;
        for (let end = 0; whole < lines.length; whole++) {
          end += Buffer.byteLength(lines[whole] ?? "");
          if (end > cut) break;
        }
        expect(found).toEqual({ entries: entries.slice(0, whole), damagedLines: 0 });
      }),
    );
  });

  test("R-MON-2: a changed byte never forges a settlement, damages two at most, and is detected", () => {
    fc.assert(
      fc.property(anyEntries, fc.nat(), fc.integer({ min: 1, max: 255 }), (entries, at, flip) => {
        const bytes = Buffer.from(entries.map(encodeEntry).join(""));
        const place = at % bytes.length;
        bytes[place] = (bytes[place] ?? 0) ^ flip;
        const { entries: found, damagedLines } = decodeJournal(bytes);
        const written = entries.map((each) => JSON.stringify(each));
        for (const each of found) expect(written).toContain(JSON.stringify(each));
        expect(found.length).toBeGreaterThanOrEqual(entries.length - 2);
        // The very last newline turned into something else is an unfinished line.
        if (place < bytes.length - 1) expect(damagedLines).toBeGreaterThan(0);
      }),
    );
  });

  test("bytes that are no journal at all yield nothing", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(decodeJournal(Buffer.from(bytes)).entries).toEqual([]);
      }),
    );
  });
});

describe("the file of a journal", () => {
  test("the disk has no file before the first settlement, and none once the database has them all", async () => {
    const journal = open();
    expect(names()).toEqual([]);
    const entries = Array.from({ length: 50 }, () => entry());
    expect(await Promise.all(entries.map((each) => journal.keep(each)))).not.toContain(false);
    expect(readAll()).toEqual(entries);
    expect(journal.stats()).toMatchObject({ entries: 50, failures: 0 });
    expect(journal.stats().bytes).toBe(fs.statSync(join(folder, names()[0] ?? "")).size);
    for (const { id } of entries) journal.forget(id);
    await journal.close();
    expect(names()).toEqual([]);
    expect(journal.stats()).toEqual({ entries: 0, bytes: 0, failures: 0 });
  });

  test("concurrent settlements share an fsync", async () => {
    const points: string[] = [];
    const journal = open({ failpoint: (point) => points.push(point) });
    await Promise.all(Array.from({ length: 500 }, () => journal.keep(entry())));
    // The first goes alone, the others wait for it.
    expect(points).toEqual([
      "journal.written",
      "journal.synced",
      "journal.written",
      "journal.synced",
    ]);
  });

  test("one that is in the database before it is written leaves nothing behind", async () => {
    const journal = open();
    const [one, other] = [entry(), entry()];
    const kept = [journal.keep(one), journal.keep(other)];
    journal.forget(one.id);
    journal.forget(other.id);
    expect(await Promise.all(kept)).toEqual([true, true]);
    await journal.close();
    expect(names()).toEqual([]);
  });

  test("R-MON-2: a settlement that is kept twice is durable both times when its promise resolves", async () => {
    const points: string[] = [];
    const journal = open({ failpoint: (point) => points.push(point) });
    const once = entry();
    const first = journal.keep(once);
    expect(await journal.keep(once)).toBe(true);
    expect(points).toContain("journal.synced");
    expect(await first).toBe(true);
    expect(readAll()).toEqual([once]);
    expect(await journal.keep(once)).toBe(true);
  });

  test("settlements that are queued at the close are written, and stay for the next start", async () => {
    const journal = open();
    const entries = [entry(), entry()];
    const kept = entries.map((each) => journal.keep(each));
    await journal.close();
    expect(await Promise.all(kept)).toEqual([true, true]);
    expect(readAll()).toEqual(entries);
    expect(await journal.keep(entry())).toBe(false);
  });

  test("R-MON-7: the journal is bounded in settlements and bytes, and takes more once there is room", async () => {
    const journal = open({ entriesMax: 2 });
    const [first] = [entry(), entry(), entry()];
    expect(await journal.keep(first)).toBe(true);
    expect(await journal.keep(entry())).toBe(true);
    expect(journal.isFull).toBe(true);
    expect(await journal.keep(entry())).toBe(false);
    journal.forget(first.id);
    expect(journal.isFull).toBe(false);
    expect(await journal.keep(entry())).toBe(true);
    const small = open({ bytesMax: 1_000, path: join(folder, "small.journal") });
    for (let n = 0; n < 2; n++) await small.keep(entry());
    expect(small.isFull).toBe(true);
    expect(small.stats().bytes).toBeLessThan(3_000);
  });

  test("a settlement that stays does not keep the space of others, and the file is complete at each step", async () => {
    const durable = new Map<string, JournalEntry>();
    const points = new Set<string>();
    const failpoint = (point: string): void => {
      points.add(point);
      const found = readAll().map(({ id }) => id);
      for (const id of durable.keys()) expect(found).toContain(id);
    };
    const journal = open({ compactBytes: 4_096, failpoint });
    const stuck = entry();
    durable.set(stuck.id, stuck);
    await journal.keep(stuck);
    for (let n = 0; n < 50; n++) {
      const passing = entry();
      expect(await journal.keep(passing)).toBe(true);
      durable.set(passing.id, passing);
      expect(readAll()).toEqual(expect.arrayContaining([...durable.values()]));
      durable.delete(passing.id);
      journal.forget(passing.id);
    }
    await journal.close();
    expect(points).toContain("journal.copied");
    expect(points).toContain("journal.compacted");
    expect(journal.stats().bytes).toBeLessThan(6_000);
    expect(names()).toEqual(["own.journal"]);
    expect(readAll()).toContainEqual(stuck);
  });

  test("a disk without room for a copy leaves the file as it is, and settlements are kept", async () => {
    const journal = open({ compactBytes: 2_000 });
    const stuck = entry();
    await journal.keep(stuck);
    // A folder of that name takes the place of the copy.
    fs.mkdirSync(join(folder, "own.journal.new", "full"), { recursive: true });
    for (let n = 0; n < 20; n++) {
      const passing = entry();
      expect(await journal.keep(passing)).toBe(true);
      journal.forget(passing.id);
    }
    expect(journal.stats()).toMatchObject({ entries: 1, failures: 0 });
    expect(decodeJournal(fs.readFileSync(path)).entries).toHaveLength(21);
  });

  test("an unusable folder is reported to the operator, and tried again later", async () => {
    fs.writeFileSync(folder, "not a folder");
    const alarm = vi.fn();
    const journal = open({ alarm });
    const now = vi.spyOn(performance, "now").mockReturnValue(1_000);
    expect(await journal.keep(entry())).toBe(false);
    expect(journal.stats()).toEqual({ entries: 0, bytes: 0, failures: 1 });
    expect(alarm).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("cannot be written"),
      expect.objectContaining({ file: path }),
    );
    expect(await journal.keep(entry())).toBe(false);
    expect(alarm).toHaveBeenCalledOnce();
    fs.rmSync(folder);
    now.mockReturnValue(2_000);
    expect(await journal.keep(entry())).toBe(true);
  });

  test.skipIf(process.platform === "win32")(
    "R-MON-2: a disk that is full in the middle of a line costs nothing that was kept",
    () => {
      // The limit on a file's size stands for the disk: the write that meets it is cut in the
      // middle.
      const script = join(import.meta.dirname, "journal-child.ts");
      const limited = `ulimit -f 16; exec "$0" "$@"`;
      const { stdout, stderr } = spawnSync(
        "/bin/sh",
        ["-c", limited, process.execPath, script, path],
        { encoding: "utf8" },
      );
      expect(stderr).toBe("");
      const { kept, failures } = JSON.parse(stdout) as { kept: string[]; failures: number };
      expect(failures).toBe(1);
      expect(kept.length).toBeGreaterThan(5);
      expect(readAll().map(({ id }) => id)).toEqual(kept);
      for (const name of names()) {
        expect(decodeJournal(fs.readFileSync(join(folder, name))).damagedLines).toBe(0);
      }
    },
  );
});
