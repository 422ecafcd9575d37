/** Against a real server of S3's protocol. */
import { createHash, randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ResultFiles } from "../../../src/result/result.ts";
import { createS3Storage } from "../../../src/result/s3-storage.ts";
import type { ResultStorage } from "../../../src/result/storage.ts";
import { type S3Server, startS3 } from "../../support/s3.ts";
import { about, openTestResults, readBack, type TestResults } from "./support.ts";

let server: S3Server;
let results: TestResults;
let storage: ResultStorage;
let bucket: ResultFiles;

beforeAll(async () => {
  [server, results] = await Promise.all([startS3(), openTestResults()]);
  storage = createS3Storage(server.config);
  bucket = results.also({ storages: [storage, results.storage] });
});
afterAll(async () => {
  storage?.close();
  await Promise.all([server?.close(), results?.close()]);
});
afterEach(() => {
  server.refuse = () => undefined;
  server.requests.length = 0;
});

const bytes = Buffer.from("what a vendor made");

describe("result files in a bucket", () => {
  it("are stored once, found, read in part, and removed when they expire", async () => {
    const first = await bucket.store({ bytes }, about);
    expect(server.requests).toEqual(["HEAD", "PUT"]);
    const second = await bucket.store({ bytes }, about);
    expect(server.requests).toEqual(["HEAD", "PUT", "HEAD"]);
    expect(results.kept()).toEqual([]);
    expect(results.incoming()).toEqual([]);
    expect(await readBack(bucket, first.token)).toEqual(bytes);
    expect(await readBack(bucket, second.token)).toEqual(bytes);
    const part = await storage.open(first.sha256, { start: 5, end: 5 });
    expect((await part?.toArray())?.join("")).toBe("a");
    await results.expireAll();
    const jobs = results.alsoJobs([storage, results.storage]);
    expect(await jobs.expire()).toEqual({ files: 2, blobs: 1 });
    expect(await storage.open(first.sha256, { start: 0, end: 1 })).toBeUndefined();
    // Removing what is not there is fine: a process may die between the store and the database.
    await storage.remove(first.sha256);
  });

  it("are stored with credentials that may not check for objects", async () => {
    server.refuse = (request) => (request === "HEAD" ? 403 : undefined);
    const { token } = await bucket.store({ bytes: Buffer.from("unseen") }, about);
    expect(await readBack(bucket, token)).toEqual(Buffer.from("unseen"));
  });

  it("are uploaded in parts where they are long, and a failed part is sent again", async () => {
    const long = randomBytes(17 * 1024 * 1024);
    let failures = 2;
    server.refuse = (request) =>
      request.startsWith("PUT partNumber") && failures-- > 0 ? 503 : undefined;
    const stored = await bucket.store({ bytes: long }, about);
    const parts = server.requests.filter((each) => each.startsWith("PUT partNumber"));
    expect(parts).toHaveLength(5);
    expect(stored.sha256).toBe(createHash("sha256").update(long).digest("hex"));
    expect((await readBack(bucket, stored.token)).equals(long)).toBe(true);
  });

  it("a failed upload leaves no parts behind, and may be retried", async () => {
    server.refuse = (request) => (/^(?:PUT|HEAD)/.test(request) ? 403 : undefined);
    const failed = bucket.store({ bytes: randomBytes(9 * 1024 * 1024) }, about);
    await expect(failed).rejects.toMatchObject({ kind: "storage", isFinal: false });
    expect(server.requests.at(-1)).toBe("DELETE uploadId");
  });

  it("an unreadable bucket is a 503, and a missing one is reported at the start", async () => {
    const { token } = await bucket.store({ bytes: Buffer.from("x") }, about);
    server.refuse = () => 403;
    await expect(readBack(bucket, token)).rejects.toMatchObject({ status: 503 });
    await expect(storage.check()).rejects.toThrow();
    server.refuse = () => undefined;
    await expect(storage.check()).resolves.toBeUndefined();
    const other = createS3Storage({ ...server.config, bucket: "no-such-bucket" });
    await expect(other.check()).rejects.toThrow();
    other.close();
  });

  it("files of the local folder are still found, and removed, after a change to a bucket", async () => {
    const old = await results.store({ bytes }, about);
    const fresh = await bucket.store({ bytes }, about);
    expect(results.kept()).toEqual([old.sha256]);
    expect(await readBack(bucket, old.token)).toEqual(bytes);
    expect(await readBack(bucket, fresh.token)).toEqual(bytes);
    await results.expireAll();
    await results.alsoJobs([storage, results.storage]).expire();
    expect(results.kept()).toEqual([]);
    expect((await results.rows()).blobs).toBe(0);
  });
});
