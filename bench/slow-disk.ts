/** A PostgreSQL of its own whose disk is slow: each fsync takes a millisecond more, as on network disks. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { openDatabase } from "../src/db/database.ts";
import { chooseListen, listenFlags, listenUrl } from "../src/db/embedded/address.ts";
import { initialize, serverSettings } from "../src/db/embedded/server-process.ts";
import { chooseRunAs, commandLine } from "../src/db/embedded/server-user.ts";
import { findBinaries } from "../src/db/embedded/programs.ts";

/** How much longer each fsync takes, in microseconds. */
const delayMicros = 1_000;

/** Loaded before the C library: does what it does, then waits. */
const shim = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int slowly(const char *name, int fd) {
  int result = ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
  usleep(${delayMicros});
  return result;
}
int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
`;

/** How long the server may take to answer, in milliseconds. */
const startMs = 60_000;

/** Such a server, with a migrated database. */
export interface SlowDatabase {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts one below `folder`. Resolves with the reason where it cannot be had here. */
export async function openSlowDatabase(folder: string): Promise<SlowDatabase | string> {
  if (process.platform !== "linux") return `no preloading on ${process.platform}`;
  const library = join(folder, "slow-fsync.so");
  const built = spawnSync(
    "cc",
    ["-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", library, "-ldl"],
    {
      input: shim,
      encoding: "utf8",
    },
  );
  if (built.error !== undefined) return "no C compiler (cc)";
  if (built.status !== 0) return `cc failed: ${built.stderr.slice(0, 200)}`;
  const server = await startServer(folder, library);
  await (await openDatabase(server.url)).close();
  return server;
}

async function startServer(folder: string, library: string): Promise<SlowDatabase> {
  const parent = join(realpathSync(folder), "slow");
  mkdirSync(parent);
  const site = {
    folder: join(parent, "postgres"),
    logFile: join(parent, "postgres.log"),
    sockets: true,
    testing: false,
  };
  writeFileSync(site.logFile, "");
  await initialize(site);
  const { postgres } = findBinaries();
  const runAs = chooseRunAs(postgres, site.folder);
  const listen = await chooseListen(site.folder, true, undefined);
  const flags = [...serverSettings, ...listenFlags(listen)].flatMap((flag) => ["-c", flag]);
  const [command, args] = commandLine(runAs, postgres, ["-D", site.folder, ...flags]);
  const log = openSync(site.logFile, "a");
  const child = spawn(command, args, {
    ...runAs.ids,
    cwd: site.folder,
    env: { PATH: process.env["PATH"], LC_ALL: "C", LD_PRELOAD: library },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const url = listenUrl(listen);
  try {
    await ready(url, child, site.logFile);
  } catch (error) {
    await stop(child);
    throw error;
  }
  return { url, close: () => stop(child) };
}

async function ready(url: string, child: ChildProcess, logFile: string): Promise<void> {
  for (const end = Date.now() + startMs; Date.now() < end; await sleep(20)) {
    if (child.exitCode !== null) break;
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    const isThere = await client.connect().then(
      () => true,
      () => false,
    );
    await client.end().catch(() => {});
    if (isThere) return;
  }
  throw new Error(
    `the slow PostgreSQL did not start: ${readFileSync(logFile, "utf8").slice(-500)}`,
  );
}

/** A fast shutdown: SIGINT, and the process itself is waited for. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGINT");
  await exited;
}
