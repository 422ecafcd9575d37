/** Journals of dead processes, and of some that only seem to be dead. */
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Journal } from "../../../../src/billing/journal/journal.ts";
import { processSpaceId } from "../../../../src/core/process-space.ts";
import { type JournalEntry, Segment } from "../../../../src/billing/journal/journal-segment.ts";
import {
  JournalReplay,
  type ReplayOptions,
} from "../../../../src/billing/journal/journal-replay.ts";
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

/** What a process that was killed has left. */
async function leave(count: number): Promise<JournalEntry[]> {
  const journal = new Journal({ folder });
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
    prefix: new Journal({ folder }).prefix,
    scanMs: 5,
    silentMs: 1_000_000,
    findKnown: async (entries) => new Set(entries.map(({ id }) => id)),
    apply: async ({ id }) => void booked.push(id),
    ...options,
  });
  closers.push(() => replaying.stop());
  replaying.start();
  return replaying;
}

function files(suffix = ""): string[] {
  return fs.readdirSync(folder).filter((name) => name.endsWith(suffix));
}

const idsOf = (entries: readonly JournalEntry[]): string[] => entries.map(({ id }) => id);

describe("R-MON-2: what a dead process kept", () => {
  test("is booked by the next start, and its file is removed once all of it is durable", async () => {
    const entries = [...(await leave(1_500)), ...(await leave(3))];
    const points: string[] = [];
    replay({ failpoint: (point) => points.push(point) });
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(booked).toEqual(idsOf(entries));
    const each = ["journal.replayed", "journal.truncated"];
    expect(points).toEqual([...each, ...each]);
  });

  test("waits for a database that is away, and survives a stop meanwhile", async () => {
    const entries = await leave(2);
    const away = vi.fn().mockRejectedValue(new Error("away"));
    const first = replay({ findKnown: away });
    await vi.waitFor(() => expect(first.entries).toBe(2));
    await first.stop();
    expect(booked).toEqual([]);
    const never = replay({ apply: () => new Promise(() => {}) });
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
    await vi.waitFor(() => expect(files(".unknown")).toHaveLength(1));
    await other.stop();
    expect(booked).toEqual([known]);
    expect(alarm).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("settlements of another database"),
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
      const apply = async ({ id }: JournalEntry): Promise<void> => {
        if (id === first) throw new Error("invalid");
        booked.push(id);
      };
      replay({ alarm, apply });
      await vi.waitFor(() => expect(files(".damaged")).toHaveLength(1));
      expect(files()).toHaveLength(1);
      expect(booked).toEqual(others);
      expect(alarm).toHaveBeenCalledExactlyOnceWith(
        expect.stringContaining("cannot be booked"),
        expect.objectContaining(what === "damaged" ? { damagedLines: 1 } : { refused: 1 }),
      );
    },
  );

  test("is taken over at once, except for files of live processes and of other containers until these are stale", async () => {
    const dead = await leave(2);
    const [left = ""] = files();
    const mark = `.${processSpaceId}.${process.pid}-`;
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()"]);
    closers.push(async () => void child.kill());
    const others = [`.${processSpaceId}.${child.pid}-`, `.0123456789abcdef.${process.pid}-`];
    const living: JournalEntry[] = [];
    for (const other of others) {
      living.push(...(await leave(1)));
      const name = files().find((each) => each !== left && each.includes(mark)) ?? "";
      fs.renameSync(join(folder, name), join(folder, name.replace(mark, other)));
    }
    const start = replay();
    await vi.waitFor(() => expect(new Set(booked)).toEqual(new Set(idsOf(dead))));
    await vi.waitFor(() => expect(files()).toHaveLength(2));
    await start.stop();
    replay({ silentMs: 20 });
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(new Set(booked.slice(dead.length))).toEqual(new Set(idsOf(living)));
  });

  test("has its settlements booked from the space that was in reserve, and the space of others who died goes back to the disk", async () => {
    const full = new Error("no space left on device");
    const journal = new Journal({ folder, reserveBytes: 8_192 });
    await journal.touch();
    const disk = vi.spyOn(Segment, "create").mockRejectedValue(full);
    const entries = [entry(), entry()];
    for (const each of entries) expect(await journal.keep(each)).toBe(true);
    await journal.close();
    disk.mockRestore();
    const [name = ""] = files();
    expect(fs.statSync(join(folder, name)).size).toBe(8_192);
    const unused = ".reserve";
    fs.writeFileSync(join(folder, name.replace(/-\d+\.journal$/, `-0${unused}`)), "\0\0\0");
    const alarm = vi.fn();
    replay({ alarm });
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(booked).toEqual(idsOf(entries));
    expect(alarm).not.toHaveBeenCalled();
  });

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

describe("a folder that processes share", () => {
  test("the space that a live process has in reserve is left alone, until nobody has touched it for a while", async () => {
    const living = new Journal({ folder, reserveBytes: 4_096 });
    closers.push(() => living.close());
    await living.touch();
    const [name = ""] = files();
    const elsewhere = name.replace(/\.[0-9a-f]+\.\d+-/, ".0123456789abcdef.1-");
    fs.renameSync(join(folder, name), join(folder, elsewhere));
    let looks = 0;
    const start = replay({ touch: async () => void looks++ });
    await vi.waitFor(() => expect(looks).toBeGreaterThan(3));
    expect(files()).toEqual([elsewhere]);
    await start.stop();
    replay({ silentMs: 20 });
    await vi.waitFor(() => expect(files()).toEqual([]));
  });

  test("files in use are left alone, and stale ones are taken over", async () => {
    const living = new Journal({ folder });
    closers.push(() => living.close());
    // It starts first: at its own start a process takes everything.
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    let looks = 0;
    const [left] = await leave(1);
    replay({ silentMs: 20_000, touch: async () => void looks++ });
    const mine = entry();
    await vi.waitFor(() =>
      expect({ files: files(), booked }).toEqual({ files: [], booked: [left?.id] }),
    );
    booked.length = 0;
    // Silence counts from when the file is seen first.
    now.mockReturnValue(20_000);
    await living.keep(mine);
    const [name = ""] = files();
    const look = async (atMs: number): Promise<void> => {
      now.mockReturnValue(atMs);
      const before = looks;
      await vi.waitFor(() => expect(looks).toBeGreaterThan(before + 3), { interval: 1 });
    };
    await look(20_000);
    await look(39_000);
    fs.utimesSync(join(folder, name), 1, 1);
    await look(41_000);
    fs.utimesSync(join(folder, name), 2, 2);
    await look(60_000);
    expect(files()).toEqual([name]);
    expect(booked).toEqual([]);
    now.mockReturnValue(80_000);
    await vi.waitFor(() => expect(booked).toEqual([mine.id]));
  });

  test("several processes that start at once book everything, each file at least once, and leave no file", async () => {
    const entries: JournalEntry[] = [];
    for (let n = 0; n < 6; n++) entries.push(...(await leave(4)));
    for (let n = 0; n < 4; n++) replay();
    await vi.waitFor(() => expect(files()).toEqual([]));
    expect(new Set(booked)).toEqual(new Set(idsOf(entries)));
  });

  test("a process whose file is taken over continues in another one, and no settlement is lost between them", async () => {
    const living = new Journal({ folder });
    closers.push(() => living.close());
    const [before, after] = [entry(), entry()];
    await living.keep(before);
    replay();
    await vi.waitFor(() => expect(booked).toEqual([before.id]));
    await living.keep(after);
    expect(files()).toHaveLength(1);
    replay();
    await vi.waitFor(() => expect(booked).toEqual([before.id, after.id]));
  });
});

test("an unusable folder is reported to the operator at the start", async () => {
  const file = join(folder, "file");
  fs.writeFileSync(file, "");
  const alarm = vi.fn();
  replay({ alarm, folder: file, scanMs: 1_000_000 });
  await vi.waitFor(() =>
    expect(alarm).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining("cannot be used"),
      expect.objectContaining({ folder: file }),
    ),
  );
});
