/** The settlement journal: its text, its files, and what happens to them when others come by. */
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
  Segment,
} from "../../../../src/billing/journal/journal-segment.ts";
import { callRow } from "../calls/call-row.ts";
import { newId } from "../../../../src/core/uuid.ts";

let parent: string;
let folder: string;
let journals: Journal[];
beforeEach(() => {
  parent = fs.mkdtempSync(join(tmpdir(), "uas-journal-"));
  folder = join(parent, "journal");
  journals = [];
});
afterEach(async () => {
  for (const journal of journals) await journal.close();
  fs.rmSync(parent, { recursive: true, force: true });
});

function open(options: Partial<JournalOptions> = {}): Journal {
  const journal = new Journal({ folder, ...options });
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

describe("the files of a journal", () => {
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
    const small = open({ bytesMax: 1_000 });
    for (let n = 0; n < 2; n++) await small.keep(entry());
    expect(small.isFull).toBe(true);
    expect(small.stats().bytes).toBeLessThan(3_000);
  });

  test("a pending settlement keeps its own file only", async () => {
    const journal = open({ segmentBytesMax: 1 });
    const stuck = entry();
    await journal.keep(stuck);
    for (let n = 0; n < 20; n++) {
      const passing = entry();
      await journal.keep(passing);
      journal.forget(passing.id);
    }
    await vi.waitFor(() => expect(names()).toHaveLength(1));
    expect(readAll()).toEqual([stuck]);
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
      expect.objectContaining({ folder }),
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
      // The limit on a file's size stands for the disk: the write that meets it is cut in the middle.
      const script = join(import.meta.dirname, "../ledger/journal-child.ts");
      const limited = `ulimit -f 16; exec "$0" "$@"`;
      const { stdout, stderr } = spawnSync(
        "/bin/sh",
        ["-c", limited, process.execPath, script, folder],
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

  test("R-MON-2: a takeover during writes finds all settlements that were durable before", async () => {
    const read: JournalEntry[] = [];
    const journal = open({ failpoint: takeNowAndThen });
    let points = 0;
    function takeNowAndThen(point: string): void {
      if (points++ % 3 !== 0) return;
      for (const name of names().filter((each) => each.endsWith(".journal"))) {
        const taken = join(folder, `${point}-${points}.taken`);
        fs.renameSync(join(folder, name), taken);
        read.push(...decodeJournal(fs.readFileSync(taken)).entries);
        fs.rmSync(taken);
      }
    }
    const entries = Array.from({ length: 60 }, () => entry());
    for (const each of entries) expect(await journal.keep(each)).toBe(true);
    expect(points).toBeGreaterThan(60);
    expect(read.length).toBeGreaterThan(10);
    const found = new Set([...read, ...readAll()].map(({ id }) => id));
    expect(entries.filter(({ id }) => !found.has(id))).toEqual([]);
  });

  test("a removed folder is created again", async () => {
    const journal = open();
    await journal.keep(entry());
    fs.rmSync(folder, { recursive: true });
    const after = entry();
    expect(await journal.keep(after)).toBe(true);
    expect(readAll()).toEqual([after]);
  });
});

describe("the reserve of a journal", () => {
  const reserveBytes = 4_096;
  const alarm = vi.fn();
  beforeEach(() => alarm.mockReset());
  afterEach(() => vi.restoreAllMocks());

  const reserves = () => names().filter((name) => name.endsWith(".reserve"));

  async function reserved(): Promise<Journal> {
    const journal = open({ reserveBytes, alarm });
    await journal.touch();
    expect(names()).toEqual([`${journal.prefix}-0.reserve`]);
    return journal;
  }

  /** From now on the disk has no room for another file. */
  function fillDisk() {
    const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    return vi.spyOn(Segment, "create").mockRejectedValue(full);
  }

  function expectUnused(): void {
    expect(reserves()).toHaveLength(1);
    const bytes = fs.readFileSync(join(folder, reserves()[0] ?? ""));
    expect(bytes.equals(Buffer.alloc(reserveBytes))).toBe(true);
  }

  test("R-MON-2: settlements go to the reserve while the disk takes no file, and it is one again after that", async () => {
    const journal = await reserved();
    expectUnused();
    fillDisk();
    for (let times = 3; times > 0; times--) {
      const entries = [entry(), entry(), entry()];
      for (const each of entries) expect(await journal.keep(each)).toBe(true);
      expect(journal.isReady).toBe(true);
      expect(reserves()).toEqual([]);
      expect(readAll()).toEqual(entries);
      expect(alarm).toHaveBeenCalledExactlyOnceWith(
        expect.stringContaining("settlements go to its reserve"),
        expect.objectContaining({ folder }),
      );
      for (const { id } of entries) journal.forget(id);
      await vi.waitFor(expectUnused);
    }
    await journal.close();
    expect(names()).toEqual([]);
  });

  test("R-MON-2: a settlement for which the reserve has no room is not called durable", async () => {
    const journal = await reserved();
    fillDisk();
    const kept: JournalEntry[] = [];
    for (let each = entry(); await journal.keep(each); each = entry()) kept.push(each);
    expect(kept.length).toBeGreaterThan(2);
    expect(journal.isReady).toBe(false);
    expect(readAll()).toEqual(kept);
    // What is in it stays for the next start.
    await journal.close();
    expect(readAll()).toEqual(kept);
  });

  test("R-MON-2: of settlements that come together, the reserve gets as many as it has room for", async () => {
    const journal = await reserved();
    fillDisk();
    const entries = Array.from({ length: 40 }, () => entry());
    const kept = await Promise.all(entries.map((each) => journal.keep(each)));
    const durable = entries.filter((_, index) => kept[index]);
    expect(durable.length).toBeGreaterThan(2);
    expect(readAll()).toEqual(durable);
    const { length } = Buffer.from(encodeEntry(entries[0] as JournalEntry));
    expect(durable).toHaveLength(Math.floor(reserveBytes / length));
    for (const { id } of durable) journal.forget(id);
    await vi.waitFor(expectUnused);
    expect(alarm).not.toHaveBeenCalledWith(
      expect.stringContaining("in reserve"),
      expect.anything(),
    );
  });

  test("a settlement that is longer than the reserve is not kept, and the close does not wait for it", async () => {
    const journal = await reserved();
    fillDisk();
    const long = entry("7", { model: "m".repeat(2 * reserveBytes) });
    expect(await journal.keep(long)).toBe(false);
    await journal.close();
    expect(readAll()).toEqual([]);
  });

  test("a reserve that cannot be renamed is made again", async () => {
    const journal = await reserved();
    const disk = fillDisk();
    vi.spyOn(Segment.prototype, "rename").mockRejectedValueOnce(new Error("read-only"));
    expect(await journal.keep(entry())).toBe(false);
    expect(names()).toEqual([]);
    disk.mockRestore();
    await journal.touch();
    expectUnused();
  });

  test("a reserve leaves the last space of a disk to others", async () => {
    const { bavail, bsize } = fs.statfsSync(parent);
    const journal = open({ reserveBytes: bavail * bsize * 0.75, alarm });
    await journal.touch();
    expect(names()).toEqual([]);
    expect(alarm).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("no space in reserve"),
      expect.objectContaining({ err: expect.objectContaining({ message: expect.any(String) }) }),
    );
  });

  test("a disk with room again gets the settlements that the reserve has no room for", async () => {
    const journal = await reserved();
    const disk = fillDisk();
    const first = entry();
    await journal.keep(first);
    disk.mockRestore();
    const more = Array.from({ length: 20 }, () => entry());
    for (const each of more) expect(await journal.keep(each)).toBe(true);
    expect(names().length).toBeGreaterThan(1);
    const ids = (entries: readonly JournalEntry[]) => entries.map(({ id }) => id).toSorted();
    expect(ids(readAll())).toEqual(ids([first, ...more]));
  });

  test("a reserve that another process removed, or that the disk had no room for, is made again", async () => {
    const disk = fillDisk();
    const journal = open({ reserveBytes, alarm });
    await journal.touch();
    await journal.touch();
    expect(names()).toEqual([]);
    expect(alarm).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("no space in reserve"),
      expect.objectContaining({ bytes: reserveBytes }),
    );
    disk.mockRestore();
    await journal.touch();
    expectUnused();
    fs.rmSync(join(folder, reserves()[0] ?? ""));
    await journal.touch();
    expectUnused();
  });

  test("R-MON-2: a process that is killed while it erases its reserve leaves nothing to replay", async () => {
    const journal = await reserved();
    fillDisk();
    const killed = Promise.withResolvers<void>();
    const erase = vi.spyOn(Segment.prototype, "erase").mockReturnValue(killed.promise);
    const only = entry();
    await journal.keep(only);
    journal.forget(only.id);
    await vi.waitFor(() => expect(erase).toHaveBeenCalled());
    // Its text is still there, under a name that nobody replays.
    expect(names()).toEqual([`${journal.prefix}-0.reserve`]);
    expect(readAll()).toEqual([only]);
    killed.resolve();
  });
});
