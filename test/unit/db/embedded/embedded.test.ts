import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startEmbedded } from "../../../../src/db/embedded/embedded.ts";
import { isProcessAlive, processSpace } from "../../../../src/core/process-space.ts";
import type { LeaseTimings } from "../../../../src/db/embedded/lease.ts";

interface Options {
  dataDir?: string;
  log?: { info(line: string): void; warn(line: string): void };
  loopback?: boolean;
  testing?: boolean;
  lease?: LeaseTimings;
  startTimeoutMs?: number;
}

/** Process ids and shared memory of its own, as a container has; what it started ends with it. */
const container = ["unshare", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child"];
const hasContainers = spawnSync("unshare", [...container.slice(1), "true"]).status === 0;
const quick: LeaseTimings = { touchMs: 50, silentMs: 1_000 };

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
  adopted: boolean;
}

/** Starts the server from another process; with `lease`, from a container of its own. @param env beside ours */
async function startElsewhere(
  lease?: LeaseTimings,
  env: Readonly<Record<string, string>> = {},
): Promise<Elsewhere> {
  const script = join(import.meta.dirname, "../embedded-child.ts");
  const program = [process.execPath, script, dataDir];
  const [command = "", ...args] =
    lease === undefined ? program : [...container, ...program, JSON.stringify(lease)];
  const child = spawn(command, args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  // It may have been killed before it is asked to end.
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

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  // Its server may be killed while the connection ends: what is asked here fails by itself.
  client.on("error", () => {});
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
  // Until the server has noticed the death, the starter is still one of its users.
  const users =
    "select count(*)::int as value from pg_locks where locktype = 'advisory' and mode = 'ShareLock'";
  await expect.poll(() => query(embedded.url, users)).toEqual([1]);
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
  fs.writeFileSync(join(dataDir, "postgres.lease"), `${processSpace}\n`);
  expect((await start()).adopted).toBe(false);
});

test("half a database that a crash left behind is made anew", async () => {
  fs.mkdirSync(join(dataDir, "postgres.new-999999999"), { recursive: true });
  await start();
  expect(fs.readdirSync(dataDir).toSorted()).toEqual([
    "postgres",
    "postgres.lease",
    "postgres.log",
  ]);
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
  const [link = ""] = fs.readdirSync(temporary);
  fs.unlinkSync(join(temporary, link));
  fs.symlinkSync(parent, join(temporary, link));
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
  test("a second container uses the server of the first, and takes over with all its data when that one is killed", async () => {
    const first = await startElsewhere(quick);
    await query(first.url, "create table kept as select 7 as value");
    const pid = serverPid();
    const second = await startElsewhere(quick);
    expect([first.adopted, second.adopted, serverPid()]).toEqual([false, true, pid]);
    await query(second.url, "insert into kept values (8)");
    // These servers trade safety for speed: what is acknowledged need not be written yet.
    await query(second.url, "checkpoint");
    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    await vi.waitFor(
      async () => expect(await query(second.url, "select value from kept")).toEqual([7, 8]),
      { timeout: 30_000, interval: 20 },
    );
  });

  test("containers with temporary folders of their own use one server, also where the path is too long for a socket", async () => {
    dataDir = join(parent, "long".repeat(25));
    const temporary = ["one", "two"].map((name) => join(parent, name));
    for (const folder of temporary) fs.mkdirSync(folder);
    const [first, second] = [
      await startElsewhere(quick, { TMPDIR: temporary[0] ?? "" }),
      await startElsewhere(quick, { TMPDIR: temporary[1] ?? "" }),
    ];
    expect([first.adopted, second.adopted]).toEqual([false, true]);
    await query(first.url, "create table kept as select 7 as value");
    expect(await query(second.url, "select value from kept")).toEqual([7]);
  });

  test("a container that ends in order hands the folder over at once", async () => {
    // Never abandoned: whoever waits for silence fails.
    const patient = { touchMs: 50, silentMs: 1_000_000 };
    const first = await startElsewhere(patient);
    const second = await startElsewhere(patient);
    await query(second.url, "create table kept as select 7 as value");
    first.child.stdin?.end();
    await once(first.child, "exit");
    await vi.waitFor(
      async () => expect(await query(second.url, "select value from kept")).toEqual([7]),
      { timeout: 30_000, interval: 20 },
    );
  });
});

describe("R-MON-14: a data folder whose owner is elsewhere and does not answer here", () => {
  /** Listens in the folder and says nothing. */
  async function listenSilently(): Promise<void> {
    const silentServer = createServer((socket) => socket.on("error", () => {}).resume());
    silentServer.listen(join(dataDir, "postgres", ".s.PGSQL.5432"));
    await once(silentServer, "listening");
    closers.push(async () => {
      silentServer.close();
      await once(silentServer, "close");
    });
  }

  /** The lease of another machine, over a folder that a server has used. */
  async function leaseElsewhere(): Promise<string> {
    await (await start()).stop();
    const lease = join(dataDir, "postgres.lease");
    fs.writeFileSync(lease, "elsewhere\nother-host\n");
    const mark = ["1", "/data", "1700000000", "5432", "/data", "", "1 1", "ready   ", ""];
    fs.writeFileSync(join(dataDir, "postgres", "postmaster.pid"), mark.join("\n"));
    return lease;
  }

  test("is refused with what to do while its lease is touched, and nothing in it is removed", async () => {
    const lease = await leaseElsewhere();
    const timer = setInterval(() => fs.utimesSync(lease, new Date(), new Date()), 20);
    closers.push(async () => clearInterval(timer));
    const refused = start({ lease: { touchMs: 50, silentMs: 500 } });
    await expect(refused).rejects.toThrow(/in use in another container.*other-host.*UAS_DATA_DIR/s);
    expect(serverPid()).toBe(1);
    expect(fs.readFileSync(lease, "utf8")).toContain("other-host");
  });

  test("is refused with what to do where its server listens and does not answer, as if it were paused", async () => {
    const lease = await leaseElsewhere();
    await listenSilently();
    await expect(start({ startTimeoutMs: 200 })).rejects.toThrow(
      /in use in another container.*other-host.*timeout.*if it is paused, resume or stop it.*UAS_DATA_DIR/s,
    );
    expect(serverPid()).toBe(1);
    // Here its process can be named.
    fs.writeFileSync(lease, `${processSpace}\n`);
    await expect(start({ startTimeoutMs: 200 })).rejects.toThrow(
      /timeout.*start the gateway again.*resume or end its process, 1, and start again.*log/s,
    );
  });

  test("is taken over once its lease was silent, whatever clock it was touched by", async () => {
    const lease = await leaseElsewhere();
    const future = new Date(Date.now() + 86_400_000);
    fs.utimesSync(lease, future, future);
    const warn = vi.fn();
    const { adopted } = await start({ lease: quick, log: { info: () => {}, warn } });
    expect(adopted).toBe(false);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("host name other-host"));
    expect(fs.readFileSync(lease, "utf8")).toContain(processSpace);
  });

  test("a server whose folder was taken over elsewhere ends, and its users follow the new owner", async () => {
    const log = { info: () => {}, warn: vi.fn() };
    await start({ lease: quick, log });
    const pid = serverPid() ?? 0;
    fs.writeFileSync(join(dataDir, "postgres.lease"), "elsewhere\nother-host\n");
    await vi.waitFor(() => expect(isProcessAlive(pid)).toBe(false));
    expect(log.warn).toHaveBeenCalledWith(expect.stringContaining("taken over elsewhere"));
    await vi.waitFor(() => expect(serverPid() ?? pid).not.toBe(pid));
  });
});
