/** `/files/…` of a whole gateway, over real sockets. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StorageConfig } from "../../../src/config/config.ts";
import { openResults, type Results } from "../../../src/result/module.ts";
import type { StoredResult } from "../../../src/result/result.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type RawReply, send } from "../../support/raw-http.ts";
import { type S3Server, startS3 } from "../../support/s3.ts";

const about = {
  accountId: "00000000-0000-7000-8000-000000000001",
  taskId: "00000000-0000-7000-8000-000000000002",
};

const bytes = Buffer.from("\x89PNG\r\n\x1a\n0123456789", "latin1");

interface Served {
  readonly gateway: Gateway;
  readonly pool: Pool;
  readonly results: Results;
  /** The file of most tests. */
  readonly file: StoredResult;
  /** Its address at this gateway. */
  readonly url: string;
  close(): Promise<void>;
}

async function serve(storage: StorageConfig): Promise<Served> {
  const dataDir = mkdtempSync(join(tmpdir(), "uas-files-"));
  const settings = {
    dataDir,
    listen: { host: "127.0.0.1", port: 0 },
    publicUrl: "https://files.test",
  };
  const vendors = { demo: { kind: "demo", baseUrl: "" } };
  const gateway = await startGateway({ vendors, settings, storage });
  const pool = new Pool({ connectionString: gateway.databaseUrl, max: 2 });
  const results = openResults({ pool, settings, config: { storage }, warn: () => {} });
  const file = await results.store({ bytes }, about);
  return {
    gateway,
    pool,
    results,
    file,
    url: `${gateway.url}${new URL(file.url).pathname}`,
    async close() {
      await results.stop();
      await pool.end();
      await gateway.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

const get = (url: string, headers: Record<string, string> = {}, method = "GET") =>
  send(url, { method, headers });

/** Checks the headers by which a browser runs nothing of an answer. */
function expectHarmless({ headers }: RawReply): void {
  expect(headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "cross-origin",
    "referrer-policy": "no-referrer",
  });
}

let bucket: S3Server;
let kinds: Readonly<Record<string, Served>>;
beforeAll(async () => {
  bucket = await startS3();
  const [folder, remote] = await Promise.all([serve({ kind: "local" }), serve(bucket.config)]);
  kinds = { folder, bucket: remote };
});
afterAll(async () => {
  await Promise.all(Object.values(kinds).map((each) => each.close()));
  await bucket.close();
});

/** The gateway that keeps its files so. */
function keptIn(kind: string): Served {
  const served = kinds[kind];
  if (served === undefined) throw new Error(`no gateway with a ${kind}`);
  return served;
}

describe.each(["folder", "bucket"])("R-TSK-8: /files of a %s", (kind) => {
  let served: Served;
  beforeAll(() => void (served = keptIn(kind)));

  it("has the address of the settings, whatever host a client names", () => {
    expect(served.file.url).toBe(`https://files.test/files/${served.file.token}.png`);
  });

  it("gives the file without a key, as it was, and says what it is", async () => {
    const reply = await get(served.url, { host: "evil.test" });
    expect(reply).toMatchObject({ status: 200, body: bytes, isCut: false });
    expectHarmless(reply);
    expect(reply.headers).toMatchObject({
      "content-type": "image/png",
      "content-length": "18",
      "accept-ranges": "bytes",
      etag: `"${served.file.sha256}"`,
      "content-disposition": `attachment; filename="result-${served.file.sha256.slice(0, 12)}.png"`,
    });
    const [, age = ""] =
      /^private, max-age=(\d+), immutable$/.exec(reply.headers["cache-control"] ?? "") ?? [];
    expect(Number(age)).toBeGreaterThan(7 * 86_400 - 60);
    expect(Number(age)).toBeLessThanOrEqual(7 * 86_400);
  });

  it("answers HEAD alike, without the bytes", async () => {
    const [whole, head] = [await get(served.url), await get(served.url, {}, "HEAD")];
    expect(head).toMatchObject({ status: 200, body: Buffer.alloc(0) });
    const same = ["content-type", "content-length", "etag", "content-disposition"];
    for (const name of same) expect(head.headers[name]).toBe(whole.headers[name]);
    const part = await get(served.url, { range: "bytes=0-1" }, "HEAD");
    expect(part).toMatchObject({ status: 206, headers: { "content-length": "2" } });
  });

  it.each([
    ["bytes=0-3", 0, 3],
    ["bytes=8-", 8, 17],
    ["bytes=-5", 13, 17],
    ["bytes=5-999", 5, 17],
    ["bytes=17-17", 17, 17],
    ["bytes=-999", 0, 17],
  ])("answers the range %s with that part", async (range, start, end) => {
    const reply = await get(served.url, { range });
    expect(reply).toMatchObject({ status: 206, body: bytes.subarray(start, end + 1) });
    expect(reply.headers["content-range"]).toBe(`bytes ${start}-${end}/18`);
    expect(reply.headers["content-length"]).toBe(String(end - start + 1));
    expect(reply.headers["etag"]).toBe(`"${served.file.sha256}"`);
  });

  it.each([
    ["several ranges", { range: "bytes=0-1,4-5" }],
    ["another unit", { range: "lines=0-1" }],
    ["no range at all", { range: "bytes=x" }],
    ["a range that ends before it begins", { range: "bytes=5-4" }],
    ["a range of another file", { range: "bytes=0-1", "if-range": '"other"' }],
    ["another tag", { "if-none-match": '"other", W/"more"' }],
  ])("answers %s with the whole", async (_case, headers) => {
    expect(await get(served.url, headers)).toMatchObject({ status: 200, body: bytes });
  });

  it("a range of this file is given where the tag is this file's", async () => {
    const headers = { range: "bytes=0-1", "if-range": `"${served.file.sha256}"` };
    expect(await get(served.url, headers)).toMatchObject({ status: 206 });
  });

  it.each(["bytes=18-", "bytes=99-100", "bytes=-0"])(
    "/files refuses the range %s",
    async (range) => {
      const reply = await get(served.url, { range });
      expect(reply.status).toBe(416);
      expect(reply.headers).toMatchObject({ "content-range": "bytes */18" });
      expect(reply.headers["cache-control"]).toBe("no-store");
    },
  );

  it("a client that has the file gets 304 and nothing more", async () => {
    const etag = `"${served.file.sha256}"`;
    for (const tag of [etag, `W/${etag}`, `"a", ${etag}`, "*"]) {
      const reply = await get(served.url, { "if-none-match": tag, range: "bytes=0-1" });
      expect(reply).toMatchObject({ status: 304, body: Buffer.alloc(0), headers: { etag } });
    }
  });
});

describe("R-TSK-8: what is no file", () => {
  let served: Served;
  beforeAll(() => void (served = keptIn("folder")));

  it.each([
    ["another token", () => "0".repeat(26) + ".png"],
    ["another extension", () => `${served.file.token}.html`],
    ["no extension", () => served.file.token],
    ["a longer token", () => `${served.file.token}0.png`],
    ["a path upwards", () => "..%2F..%2Fmaster.key"],
    ["a path upwards of the right form", () => `..%2f${served.file.token}.png`],
    ["a backslash", () => "..%5C..%5Cmaster.key"],
    ["a zero byte", () => `${served.file.token}.png%00`],
    ["the name of the blob", () => served.file.sha256],
    ["nothing", () => ""],
    ["the folder of incoming files", () => "incoming"],
  ])("%s is no file and a 404", async (_case, name) => {
    for (const method of ["GET", "HEAD"]) {
      const reply = await get(`${served.gateway.url}/files/${name()}`, {}, method);
      expect(reply.status).toBe(404);
      expect(reply.body.toString()).not.toContain(served.file.token);
    }
  });

  it("a 404 is in the platform's style, and is not cached", async () => {
    const reply = await get(`${served.gateway.url}/files/${"0".repeat(26)}.png`);
    expect(JSON.parse(reply.body.toString())).toMatchObject({ error: { code: "not_found" } });
    expect(reply.headers["cache-control"]).toBe("no-store");
    expectHarmless(reply);
  });

  it("an expired file is 410, at once and after the job", async () => {
    const { token, url } = await served.results.store({ bytes: Buffer.from("old") }, about);
    const here = `${served.gateway.url}${new URL(url).pathname}`;
    expect(await get(here)).toMatchObject({ status: 200 });
    const sql = "update result_file set expire_time = now() where token = $1";
    await served.pool.query(sql, [token]);
    expect(await get(here)).toMatchObject({ status: 410 });
    await served.results.jobs.expire();
    const gone = await get(here);
    expect(gone).toMatchObject({ status: 410 });
    expect(gone.headers["cache-control"]).toBe("no-store");
    expect(gone.body.toString()).toContain("expired");
  });

  it("a store that has lost the bytes is 500, not a cut or cached file", async () => {
    const lost = await served.results.store({ bytes: Buffer.from("lost") }, about);
    const folder = await served.pool.query("update result_blob set sha256 = $2 where sha256 = $1", [
      Buffer.from(lost.sha256, "hex"),
      Buffer.alloc(32, 1),
    ]);
    expect(folder.rowCount).toBe(1);
    await served.pool.query("update result_file set sha256 = $2 where token = $1", [
      lost.token,
      Buffer.alloc(32, 1),
    ]);
    const reply = await get(`${served.gateway.url}${new URL(lost.url).pathname}`);
    expect(reply.status).toBe(500);
    expect(reply.headers["cache-control"]).toBe("no-store");
  });

  it("methods other than GET and HEAD are a 405 at /files", async () => {
    for (const method of ["POST", "PUT", "DELETE"]) {
      const reply = await send(served.url, { method, ...(method !== "DELETE" && { body: "x" }) });
      expect(reply).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
    }
  });

  it("an empty file is served, and has no range", async () => {
    const { url } = await served.results.store({ bytes: Buffer.alloc(0) }, about);
    const here = `${served.gateway.url}${new URL(url).pathname}`;
    const whole = await get(here);
    expect(whole).toMatchObject({ status: 200, body: Buffer.alloc(0) });
    expect(whole.headers["content-length"]).toBe("0");
    expect(await get(here, { range: "bytes=0-" })).toMatchObject({ status: 416 });
  });

  it("what a stranger named a page is bytes, to be saved", async () => {
    const page = Buffer.from("<!doctype html><script>alert(1)</script>");
    const named = { ...about, contentType: "text/html" };
    const { url } = await served.results.store({ bytes: page }, named);
    const reply = await get(`${served.gateway.url}${new URL(url).pathname}`);
    expect(reply.headers["content-type"]).toBe("application/octet-stream");
    expect(reply.headers["content-disposition"]).toMatch(/^attachment; filename="[^"]*\.bin"$/);
    expectHarmless(reply);
  });

  it("no log line has a token", async () => {
    await get(served.url);
    expect(served.gateway.log.some((line) => line.includes("/files/:name"))).toBe(true);
    expect(served.gateway.log.join("\n")).not.toContain(served.file.token);
  });
});

describe("slow readers", () => {
  let served: Served;
  beforeAll(() => void (served = keptIn("folder")));

  it("slow readers are not read ahead for, and one that leaves frees what was open", async () => {
    const long = Buffer.alloc(48 * 1024 * 1024, 7);
    const { url } = await served.results.store({ bytes: long }, about);
    const { hostname, port } = new URL(served.gateway.url);
    const before = process.memoryUsage().rss;
    const readers = Array.from({ length: 8 }, () => {
      const socket = connect(Number(port), hostname);
      socket.pause();
      socket.on("error", () => {});
      socket.write(`GET ${new URL(url).pathname} HTTP/1.1\r\nhost: x\r\n\r\n`);
      return socket;
    });
    const inFlight = async (): Promise<number> => {
      const { body } = await get(`${served.gateway.internalUrl}/metrics`);
      return Number(/^uas_\w*in_flight (\d+)/m.exec(body.toString())?.[1] ?? Number.NaN);
    };
    while ((await inFlight()) !== readers.length) await sleep(5);
    // Readahead happens within this time: 384 MiB of a folder in memory take 100 ms.
    await sleep(300);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
    for (const socket of readers) socket.destroy();
    while ((await inFlight()) !== 0) await sleep(5);
    const reply = await get(`${served.gateway.url}${new URL(url).pathname}`);
    expect(reply.body.equals(long)).toBe(true);
  });
});
