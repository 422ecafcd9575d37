import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startEmbedded } from "../../src/db/embedded.ts";

interface Options {
  dataDir?: string;
  log?: { info(line: string): void; warn(line: string): void };
  loopback?: boolean;
  testing?: boolean;
}

const silent = { info: () => {}, warn: () => {} };
let parent: string;
let dataDir: string;
let closers: (() => Promise<unknown>)[];

beforeEach(() => {
  parent = fs.mkdtempSync(join(tmpdir(), "uas-embedded-"));
  dataDir = join(parent, "data");
  closers = [];
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
  fs.rmSync(parent, { recursive: true, force: true });
});

async function start(options: Options = {}) {
  const embedded = await startEmbedded({ dataDir, log: silent, testing: true, ...options });
  closers.push(() => embedded.stop());
  return embedded;
}

/** Starts the server from another process. */
async function startElsewhere(): Promise<{ child: ChildProcess; url: string; adopted: boolean }> {
  const script = join(import.meta.dirname, "embedded-child.ts");
  const child = spawn(process.execPath, [script, dataDir], { stdio: ["pipe", "pipe", "inherit"] });
  closers.push(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.stdin.end();
      await once(child, "exit");
    }
  });
  const [line]: unknown[] = await once(createInterface(child.stdout), "line");
  return { child, ...JSON.parse(String(line)) };
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ value: unknown }>(sql);
    return rows.map(({ value }) => value);
  } finally {
    await client.end();
  }
}

/** The process id in the server's mark; `undefined` where no server runs. */
function serverPid(): number | undefined {
  const mark = join(dataDir, "postgres", "postmaster.pid");
  return fs.existsSync(mark) ? Number(fs.readFileSync(mark, "utf8").split("\n")[0]) : undefined;
}

function mode(path: string): string {
  return (fs.statSync(path).mode & 0o777).toString(8);
}

test("a server is made, stopped and opened again with its data", async () => {
  const first = await start();
  expect(first.adopted).toBe(false);
  await query(first.url, "create table kept as select 7 as value");
  expect(
    await query(first.url, "select pg_encoding_to_char(encoding) as value from pg_database"),
  ).toEqual(["UTF8", "UTF8", "UTF8"]);
  await first.stop();
  expect(serverPid()).toBeUndefined();
  const again = await start();
  expect(again.adopted).toBe(false);
  expect(await query(again.url, "select value from kept")).toEqual([7]);
});

test("only its owner reaches the server: a private folder, no network, no secrets in it", async () => {
  vi.stubEnv("UAS_CANARY", "canary-4711");
  closers.push(async () => vi.unstubAllEnvs());
  const { url } = await start();
  expect([dataDir, join(dataDir, "postgres"), join(dataDir, "postgres.log")].map(mode)).toEqual([
    "700",
    "700",
    "600",
  ]);
  expect(await query(url, "select current_setting('listen_addresses') as value")).toEqual([""]);
  if (process.platform === "linux") {
    expect(fs.readFileSync(`/proc/${serverPid()}/environ`, "utf8")).not.toContain("canary");
  }
});

test("a server whose starter was killed is adopted, and stopped by who adopted it", async () => {
  const { child, url } = await startElsewhere();
  await query(url, "create table kept as select 7 as value");
  const pid = serverPid();
  child.kill("SIGKILL");
  await once(child, "exit");
  const embedded = await start();
  expect(embedded.adopted).toBe(true);
  expect(serverPid()).toBe(pid);
  expect(await query(embedded.url, "select value from kept")).toEqual([7]);
  await embedded.stop();
  expect(serverPid()).toBeUndefined();
});

test("two processes that start at once share one server; the last to leave stops it", async () => {
  const [one, two] = await Promise.all([startElsewhere(), startElsewhere()]);
  expect(one.adopted).not.toBe(two.adopted);
  expect(one.url).toBe(two.url);
  // The one that started it leaves first: the other must not notice.
  const [starter, other] = one.adopted ? [two, one] : [one, two];
  starter.child.stdin?.end();
  await once(starter.child, "exit");
  expect(await query(other.url, "select 1 as value")).toEqual([1]);
  other.child.stdin?.end();
  await once(other.child, "exit");
  expect(serverPid()).toBeUndefined();
});

test("R-MON-2: a server that is killed comes back with everything that was committed", async () => {
  let told: ((line: string) => void) | undefined;
  const log = { info: () => {}, warn: (line: string) => told?.(line) };
  const { url } = await start({ log, testing: false });
  await query(url, "create table kept as select 7 as value");
  const killed = serverPid();
  const warned = new Promise<string>((resolve) => {
    told = resolve;
  });
  process.kill(killed ?? 0, "SIGKILL");
  expect(await warned).toContain("starting it again");
  await vi.waitFor(async () => expect(await query(url, "select value from kept")).toEqual([7]), {
    timeout: 10_000,
    interval: 20,
  });
  expect(serverPid()).not.toBe(killed);
});

test("the marks of a dead server, its process id in use again, are no obstacle", async () => {
  await (await start()).stop();
  const folder = join(dataDir, "postgres");
  const mark = [process.pid, folder, 1_700_000_000, 5432, folder, "", "1 1", "ready   ", ""];
  fs.writeFileSync(join(folder, "postmaster.pid"), mark.join("\n"));
  fs.writeFileSync(join(folder, ".s.PGSQL.5432.lock"), mark.join("\n"));
  expect((await start()).adopted).toBe(false);
});

test("half a database that a crash left behind is made anew", async () => {
  fs.mkdirSync(join(dataDir, "postgres.new-999999999"), { recursive: true });
  await start();
  expect(fs.readdirSync(dataDir).toSorted()).toEqual(["postgres", "postgres.log"]);
});

test("a data folder with a path too long for a socket works", async () => {
  dataDir = join(parent, "a folder, with a space and a comma".repeat(4));
  const { url } = await start();
  expect(await query(url, "show data_directory")).toHaveLength(1);
  const folder = new URL(url).searchParams.get("host") ?? "";
  closers.push(async () => fs.rmSync(folder, { recursive: true }));
  expect(mode(folder)).toBe("700");
});

test("where sockets are not possible, loopback asks for a password that only the owner can read", async () => {
  const embedded = await start({ loopback: true });
  const { url } = embedded;
  expect(mode(join(dataDir, "postgres.password"))).toBe("600");
  const wrong = new URL(url);
  wrong.password = "wrong";
  await expect(query(wrong.href, "select 1")).rejects.toThrow("password authentication failed");
  expect(await query(url, "select 1 as value")).toEqual([1]);
  await embedded.stop();
  const socket = createConnection(Number(new URL(url).port), "127.0.0.1");
  const [error]: unknown[] = await once(socket, "error").catch((reason: unknown) => [reason]);
  expect(String(error)).toContain("ECONNREFUSED");
});

test("a server that cannot start says why and where its log is", async () => {
  await (await start()).stop();
  fs.appendFileSync(join(dataDir, "postgres", "postgresql.conf"), "\nno_such_setting = 1\n");
  await expect(start()).rejects.toThrow(/could not be started.*postgres\.log.*no_such_setting/s);
});
