import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { createConnection } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openEmbedded, startEmbedded } from "../../../../src/db/embedded/embedded.ts";

interface Options {
  dataDir?: string;
  log?: { info(line: string): void; warn(line: string): void };
  loopback?: boolean;
  testing?: boolean;
}

/** Separate process IDs and shared memory, like in a container; its processes end with it. */
const container = ["unshare", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child"];
const hasContainers = spawnSync("unshare", [...container.slice(1), "true"]).status === 0;

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

interface Elsewhere {
  child: ChildProcess;
  url: string;
  /** Why it did not start. */
  error?: string;
}

/** Starts the server from another process, or from another container. */
async function startElsewhere({ isContainer = false } = {}): Promise<Elsewhere> {
  const script = join(import.meta.dirname, "../embedded-child.ts");
  const program = [process.execPath, script, dataDir];
  const [command = "", ...args] = isContainer ? [...container, ...program] : program;
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  // It may have been killed before its orderly end.
  for (const pipe of [child.stdin, child.stdout]) pipe.on("error", () => {});
  closers.push(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.stdin.end();
      await once(child, "exit");
    }
  });
  const lines = createInterface(child.stdout);
  const [line]: unknown[] = await once(lines, "line");
  lines.on("error", () => {});
  return { child, ...JSON.parse(String(line)) };
}

/** Ends a process without a chance to clean up. */
async function killHard({ child }: Elsewhere): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "exit");
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  // Its server may be killed while the connection ends; the query fails by itself.
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<{ value: unknown }>(sql);
    return rows.map(({ value }) => value);
  } finally {
    await client.end();
  }
}

/** The process id in the server's mark; `undefined` if no server runs. */
function serverPid(): number | undefined {
  const mark = join(dataDir, "postgres", "postmaster.pid");
  return fs.existsSync(mark) ? Number(fs.readFileSync(mark, "utf8").split("\n")[0]) : undefined;
}

function mode(path: string): string {
  return (fs.statSync(path).mode & 0o777).toString(8);
}

test("a server is made, stopped and opened again with its data", async () => {
  const first = await start();
  await query(first.url, "create table kept as select 7 as value");
  expect(
    await query(first.url, "select pg_encoding_to_char(encoding) as value from pg_database"),
  ).toEqual(["UTF8", "UTF8", "UTF8"]);
  await first.stop();
  expect(serverPid()).toBeUndefined();
  const again = await start();
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

test("the server of an owner that was killed is replaced by that of the next owner, with its data", async () => {
  const dead = await startElsewhere();
  await query(dead.url, "create table kept as select 7 as value");
  const pid = serverPid();
  await killHard(dead);
  const next = await start();
  expect(serverPid()).not.toBe(pid);
  expect(await query(next.url, "select value from kept")).toEqual([7]);
  await next.stop();
  expect(serverPid()).toBeUndefined();
});

const refused =
  /^Error: The data folder .* is in use by process \d+ on host \S+ since 20\S+Z: stop that gateway, or set another UAS_DATA_DIR for this one; gateways share a database with DATABASE_URL\.$/;

test("R-MON-14: a data folder has one owner: a second process is refused with who owns it", async () => {
  const first = await startElsewhere();
  const second = await start().catch(String);
  expect(second).toMatch(refused);
  expect(second).toContain(`process ${first.child.pid} on host ${hostname()}`);
  expect(await query(first.url, "select 1 as value")).toEqual([1]);
});

test("R-MON-14: of processes that start at once on a folder whose owner was killed, one owns it", async () => {
  await killHard(await startElsewhere());
  const started = await Promise.all([startElsewhere(), startElsewhere(), startElsewhere()]);
  const errors = started.flatMap(({ error }) => (error === undefined ? [] : [error]));
  expect(errors).toHaveLength(2);
  for (const error of errors) expect(error).toMatch(refused);
});

test("a command connects to the server of the owner and leaves it alone, and without an owner runs one as long as itself", async () => {
  const owner = await start();
  const command = await openEmbedded({ dataDir, log: silent, testing: true });
  expect(command.url).toBe(owner.url);
  await command.stop();
  expect(await query(owner.url, "select 1 as value")).toEqual([1]);
  await owner.stop();
  const alone = await openEmbedded({ dataDir, log: silent, testing: true });
  expect(await query(alone.url, "select 1 as value")).toEqual([1]);
  await alone.stop();
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
    timeout: 30_000,
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
  const { url } = await start();
  expect(await query(url, "select 1 as value")).toEqual([1]);
});

test("half a database that a crash left behind is made anew", async () => {
  fs.mkdirSync(join(dataDir, "postgres.new"), { recursive: true });
  await start();
  expect(fs.readdirSync(dataDir).toSorted()).toEqual(["owner.sock", "postgres", "postgres.log"]);
});

test("a data folder with a path too long for a socket works", async () => {
  dataDir = join(parent, "a folder, with a space and a comma".repeat(4));
  const { url } = await start();
  expect(await query(url, "show data_directory")).toHaveLength(1);
  const folder = new URL(url).searchParams.get("host") ?? "";
  closers.push(async () => fs.rmSync(folder, { recursive: true }));
  expect(fs.realpathSync(folder)).toBe(fs.realpathSync(join(dataDir, "postgres")));
  expect(mode(folder)).toBe("700");
});

test("a data folder with a path too long for a socket is refused where a stranger took the name of its link, and where none can be made", async () => {
  dataDir = join(parent, "long".repeat(25));
  const temporary = join(parent, "tmp");
  fs.mkdirSync(temporary);
  vi.stubEnv("TMPDIR", temporary);
  closers.push(async () => vi.unstubAllEnvs());
  await (await start()).stop();
  for (const link of fs.readdirSync(temporary)) {
    fs.unlinkSync(join(temporary, link));
    fs.symlinkSync(parent, join(temporary, link));
  }
  await expect(start()).rejects.toThrow(/not a link of this user to it: remove it.*UAS_DATA_DIR/);
  vi.stubEnv("TMPDIR", join(parent, "none"));
  await expect(start()).rejects.toThrow(/cannot be created.*Set UAS_DATA_DIR or TMPDIR/);
  vi.stubEnv("TMPDIR", dataDir);
  await expect(start()).rejects.toThrow(/too long, too.*Set UAS_DATA_DIR or TMPDIR/);
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

describe.runIf(hasContainers)("R-MON-14: a data folder that containers share has one owner", () => {
  test("a second container is refused while the first lives, and has all data when that one is killed", async () => {
    const first = await startElsewhere({ isContainer: true });
    await query(first.url, "create table kept as select 7 as value");
    // These servers trade safety for speed: what is acknowledged need not be written yet.
    await query(first.url, "checkpoint");
    expect((await startElsewhere({ isContainer: true })).error).toMatch(refused);
    expect(await query(first.url, "select value from kept")).toEqual([7]);
    await killHard(first);
    const second = await startElsewhere({ isContainer: true });
    expect(await query(second.url, "select value from kept")).toEqual([7]);
  });

  test("a command in another container connects to the server of the owner", async () => {
    const owner = await startElsewhere({ isContainer: true });
    const { url } = await openEmbedded({ dataDir, log: silent, testing: true });
    expect(url).toBe(owner.url);
    expect(await query(url, "select 1 as value")).toEqual([1]);
  });

  test("a paused owner keeps the folder, and the refusal says that it does not answer", async () => {
    const owner = await startElsewhere();
    owner.child.kill("SIGSTOP");
    closers.push(async () => void owner.child.kill("SIGCONT"));
    await expect(start()).rejects.toThrow("is in use by a process that does not answer");
  });
});
