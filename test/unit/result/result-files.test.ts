import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { ResultFailure } from "../../../src/result/result.ts";
import type { ResultStorage } from "../../../src/result/storage.ts";
import { about, openTestResults, readBack, type TestResults } from "./support.ts";

let results: TestResults;
/** Faults of the folder that a test injects. */
let fault: Partial<ResultStorage> = {};

beforeAll(async () => {
  results = await openTestResults((local) => ({
    ...local,
    keep: (file, signal) => fault.keep?.(file, signal) ?? local.keep(file, signal),
    remove: (sha256) => fault.remove?.(sha256) ?? local.remove(sha256),
  }));
});
afterAll(() => results.close());
afterEach(async () => {
  fault = {};
  // Every test leaves nothing behind, whatever it was about.
  await results.expireAll();
  await results.jobs.expire();
  expect(results.kept()).toEqual([]);
  expect(results.incoming()).toEqual([]);
  await results.pool.query("delete from result_file");
  expect(await results.rows()).toEqual({ files: 0, blobs: 0 });
});

const bytes = Buffer.from("what a vendor made");
const sha256 = createHash("sha256").update(bytes).digest("hex");

/** Resolves when it is opened. */
function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { open: resolve, opened: promise };
}

describe("R-TSK-8: storing", () => {
  it("gives an address that cannot be guessed, for 7 days, and serves the same bytes", async () => {
    const before = Date.now();
    const stored = await results.store({ bytes }, { ...about, contentType: "text/plain" });
    expect(stored).toMatchObject({ contentType: "text/plain; charset=utf-8", bytes: 18, sha256 });
    expect(stored.url).toBe(`https://gateway.test/files/${stored.token}.txt`);
    expect(stored.token).toMatch(/^[0-9A-Za-z]{26}$/);
    const day = 24 * 60 * 60 * 1_000;
    expect(stored.expireTime.getTime()).toBeGreaterThanOrEqual(before + 7 * day);
    expect(stored.expireTime.getTime()).toBeLessThanOrEqual(Date.now() + 7 * day);
    expect(await readBack(results, stored.token)).toEqual(bytes);
  });

  it.each([400, -400])(
    "a process whose clock is off by %i days stores files for 7 days of the database's clock",
    async (days) => {
      const dayMs = 24 * 60 * 60 * 1_000;
      const realMs = Date.now();
      vi.useFakeTimers({ toFake: ["Date"], now: realMs + days * dayMs });
      onTestFinished(() => void vi.useRealTimers());
      const stored = await results.store({ bytes }, about);
      expect(stored.expireTime.getTime()).toBeGreaterThanOrEqual(realMs + 7 * dayMs);
      expect(await readBack(results, stored.token)).toEqual(bytes);
      const found = await results.find(stored.token);
      expect(found).toMatchObject({ leftMs: expect.any(Number) });
      const { leftMs = 0 } = found?.expired === false ? found : {};
      expect(leftMs).toBeLessThanOrEqual(7 * dayMs);
      expect(leftMs).toBeGreaterThan(6 * dayMs);
    },
  );

  it("stores equal bytes once, under separate tokens", async () => {
    const stored = await Promise.all(
      Array.from({ length: 10 }, () => results.store({ bytes }, about)),
    );
    expect(new Set(stored.map(({ token }) => token)).size).toBe(10);
    expect(await results.rows()).toEqual({ files: 10, blobs: 1 });
    expect(results.kept()).toEqual([sha256]);
    for (const { token } of stored) expect(await readBack(results, token)).toEqual(bytes);
  });

  it("empty files are stored too", async () => {
    const empty = await results.store({ bytes: Buffer.alloc(0) }, about);
    expect(empty).toMatchObject({ bytes: 0, contentType: "application/octet-stream" });
    expect(await results.find(empty.token)).toMatchObject({ expired: false, bytes: 0 });
  });

  it("ends at the limit, before the store sees anything", async () => {
    const small = results.also({ limits: { bytesMax: bytes.length } });
    await small.store({ bytes }, about);
    const longer = small.store({ bytes: Buffer.concat([bytes, bytes]) }, about);
    await expect(longer).rejects.toMatchObject({ kind: "too_large", isFinal: true });
    expect(await results.rows()).toEqual({ files: 1, blobs: 1 });
  });

  it("replaces bytes that a disk has truncated", async () => {
    mkdirSync(join(results.folder, sha256.slice(0, 2)), { recursive: true });
    writeFileSync(join(results.folder, sha256.slice(0, 2), sha256), "what");
    const { token } = await results.store({ bytes }, about);
    expect(await readBack(results, token)).toEqual(bytes);
  });

  it("a store that fails is reported, and leaves no valid token", async () => {
    fault.keep = () => Promise.reject(new Error("ENOSPC: no space left"));
    const failed = results.store({ bytes }, about);
    await expect(failed).rejects.toBeInstanceOf(ResultFailure);
    await expect(failed).rejects.toMatchObject({ kind: "storage", isFinal: false });
    const { rows } = await results.pool.query<{ token: string }>("select token from result_file");
    expect(rows).toHaveLength(1);
    expect(await results.find(rows[0]?.token ?? "")).toBeUndefined();
    expect(results.incoming()).toEqual([]);
  });

  it("lost bytes are a 500, and logged", async () => {
    const { token } = await results.store({ bytes }, about);
    await results.storage.remove(sha256);
    await expect(readBack(results, token)).rejects.toMatchObject({
      status: 500,
      cause: expect.objectContaining({ message: expect.stringContaining(sha256) }),
    });
  });
});

describe("R-TSK-8: expiring", () => {
  it("an expired file is not served, its bytes are removed by the job, and its token is deleted later", async () => {
    const { token } = await results.store({ bytes }, about);
    await results.expireAll();
    expect(await results.find(token)).toEqual({ expired: true });
    expect(await results.jobs.expire()).toEqual({ files: 1, blobs: 1 });
    expect(results.kept()).toEqual([]);
    expect(await results.find(token)).toEqual({ expired: true });
    const long = "update result_file set expire_time = now() - interval '29 days'";
    await results.pool.query(long);
    await results.jobs.expire();
    expect(await results.find(token)).toEqual({ expired: true });
    await results.pool.query(long.replace("29", "31"));
    await results.jobs.expire();
    expect(await results.find(token)).toBeUndefined();
    expect(await results.rows()).toEqual({ files: 0, blobs: 0 });
  });

  it("bytes stay as long as any token refers to them", async () => {
    const first = await results.store({ bytes }, about);
    const later = new Date(Date.now() + 60_000);
    const second = await results.store({ bytes }, { ...about, expireTime: later });
    await results.pool.query(
      "update result_file set expire_time = now() - interval '1 second' where token = $1",
      [first.token],
    );
    expect(await results.jobs.expire()).toEqual({ files: 1, blobs: 0 });
    expect(await readBack(results, second.token)).toEqual(bytes);
    expect(second.expireTime).toEqual(later);
  });

  it("bytes of an unreachable store are removed by a later run, and a warning is logged", async () => {
    await results.store({ bytes }, about);
    await results.expireAll();
    fault.remove = () => Promise.reject(new Error("the bucket is away"));
    expect(await results.jobs.expire()).toEqual({ files: 1, blobs: 0 });
    expect(results.warnings.at(-1)).toContain("trying again later");
    expect(results.kept()).toEqual([sha256]);
    fault = {};
    expect(await results.jobs.expire()).toEqual({ files: 0, blobs: 1 });
  });

  it("old temporary files of killed processes are removed, and nothing else", async () => {
    const folder = join(results.folder, "incoming");
    mkdirSync(folder, { recursive: true });
    const [old, young] = [randomName(), randomName()];
    for (const name of [old, young, "notes.txt"]) writeFileSync(join(folder, name), "x");
    const past = Date.now() / 1_000 - 2 * 60 * 60;
    for (const name of [old, "notes.txt"]) utimesSync(join(folder, name), past, past);
    await results.jobs.expire();
    expect(results.incoming().toSorted()).toEqual([young, "notes.txt"].toSorted());
    utimesSync(join(folder, young), past, past);
    await results.jobs.expire();
    rmSync(join(folder, "notes.txt"));
  });
});

function randomName(): string {
  return randomBytes(16)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

describe("a store and an expiry of the same bytes at once", () => {
  it("a registered token protects the bytes before they are stored", async () => {
    await results.store({ bytes }, about);
    await results.expireAll();
    const [reached, go] = [gate(), gate()];
    const storing = results
      .also({
        failpoint: async (point) => {
          if (point !== "registered") return;
          reached.open();
          await go.opened;
        },
      })
      .store({ bytes }, about);
    await reached.opened;
    expect(await results.jobs.expire()).toEqual({ files: 1, blobs: 0 });
    go.open();
    expect(await readBack(results, (await storing).token)).toEqual(bytes);
  });

  it("a removal under way ends first, and then the bytes are stored again", async () => {
    await results.store({ bytes }, about);
    await results.expireAll();
    const [reached, go] = [gate(), gate()];
    fault.remove = async (hash) => {
      reached.open();
      await go.opened;
      rmSync(join(results.folder, hash.slice(0, 2), hash));
    };
    const expiring = results.jobs.expire();
    await reached.opened;
    const storing = results.store({ bytes }, about);
    await waitingForLock();
    go.open();
    expect(await expiring).toEqual({ files: 1, blobs: 1 });
    fault = {};
    expect(await readBack(results, (await storing).token)).toEqual(bytes);
  });

  it("no token that was given out is ever without its bytes, with many stores and an expiry of two nodes at once", async () => {
    const samples = ["a", "b", "c"].map((text) => Buffer.from(text));
    const other = results.alsoJobs([results.storage]);
    const live: { token: string; sample: Buffer }[] = [];
    for (let round = 0; round < 12; round++) {
      // Half of what there is expires while the same bytes come again.
      await results.pool.query(
        "update result_file set expire_time = now() - interval '1 second' where token = any($1)",
        [live.splice(0, Math.ceil(live.length / 2)).map(({ token }) => token)],
      );
      const [stored] = await Promise.all([
        Promise.all(
          samples.map(async (sample) => {
            const { token } = await results.store({ bytes: sample }, about);
            return { token, sample };
          }),
        ),
        results.jobs.expire(),
        other.expire(),
      ]);
      live.push(...stored);
      for (const { token, sample } of live) {
        expect((await readBack(results, token)).equals(sample)).toBe(true);
      }
    }
    expect(live.length).toBeGreaterThan(3);
  });
});

/** Resolves when some statement waits for a row that another transaction has locked. */
async function waitingForLock(): Promise<void> {
  const sql =
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  while ((await results.pool.query(sql)).rowCount === 0) await new Promise(setImmediate);
}
