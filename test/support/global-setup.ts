/**
 * Once per test run: a folder for temporary files, a PostgreSQL server, and in it a template
 * database with every migration applied.
 */
import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { billingPartitions } from "../../src/billing/jobs.ts";
import { buildPages } from "../../src/app/built-pages.ts";
import { openDatabase } from "../../src/db/database.ts";
import { startEmbedded } from "../../src/db/embedded/embedded.ts";
import { ensurePartitions } from "../../src/db/partition.ts";
import { createDatabase, dropDatabase, type TestServer, withDatabase } from "./test-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The server of this run. */
    server: TestServer;
  }
}

const prefix = "uas-test-";

const log = {
  info: (): void => {},
  warn: (line: string): void => void process.stderr.write(`${line}\n`),
};

/** Uses the server of `DATABASE_URL`, else starts an embedded one. Returns the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await makeFolder();
  const [{ adminUrl, stop }] = await Promise.all([
    findServer(folder),
    compileAll().catch(() => {}),
  ]);
  const end = async (): Promise<void> => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const template = await createDatabase(adminUrl, "template1");
    const database = await openDatabase(withDatabase(adminUrl, template));
    // Else every gateway makes them when it starts, which takes PostgreSQL longer than the rest of
    // the start.
    await ensurePartitions(database.pool, billingPartitions);
    await database.pool.query("select ledger_guard_partitions()");
    // A template must have no connections while it is copied.
    await database.close();
    project.provide("server", { adminUrl, template });
    return async () => {
      await dropDatabase(adminUrl, template);
      await end();
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/**
 * Makes a folder for what this run keeps; in memory, it has the temporary files of every test too.
 */
async function makeFolder(): Promise<string> {
  const isInMemory = process.env["TMPDIR"] === undefined && hasMemory();
  const parent = isInMemory ? memoryFolder : tmpdir();
  await removeLeftovers(parent);
  const folder = mkdtempSync(join(parent, `${prefix}${process.pid}-`));
  if (isInMemory) {
    // The same mode as the folder that it replaces: other users may pass to the files that are open
    // to them.
    chmodSync(folder, 0o711);
    // The workers are started later, and so are their children.
    process.env["TMPDIR"] = folder;
  }
  return folder;
}

/** Linux keeps the files of this folder in memory. */
const memoryFolder = "/dev/shm";

/** The type of such a file system, by statfs(2). */
const tmpfs = 0x0102_1994;

/** Free memory required for temporary files, and for processes besides them, in bytes. */
const memoryNeeded = { files: 2 * 1024 ** 3, all: 4 * 1024 ** 3 };

/**
 * Whether temporary files can be kept in memory. ext4 makes each file only after it has passed over
 * every inode that was deleted in the last minutes: behind some dropped databases, a new one takes
 * 300 to 600 ms of CPU, and 20 ms in memory.
 */
function hasMemory(): boolean {
  try {
    const { type, bavail, bsize } = statfsSync(memoryFolder);
    const hasRoom = bavail * bsize >= memoryNeeded.files && freemem() >= memoryNeeded.all;
    return type === tmpfs && hasRoom;
  } catch {
    return false;
  }
}

/**
 * Compiles the modules of the gateway and the console's pages once, instead of in each of the first
 * gateways. If it fails, so do they, and report the reason.
 */
async function compileAll(): Promise<void> {
  const source = (path: string): string => join(import.meta.dirname, "../..", path);
  const parts = [
    "src/app/serve.ts",
    "src/app/backend.ts",
    "src/cli/program.ts",
    "src/provider/index.ts",
  ];
  const code = parts.map((part) => `await import(${JSON.stringify(source(part))});`).join("");
  const args = ["--import", source("bin/compile-cache.js"), "--input-type=module", "-e", code];
  await Promise.all([promisify(execFile)(process.execPath, args), buildPages()]);
}

async function findServer(
  dataDir: string,
): Promise<{ adminUrl: string; stop: () => Promise<void> }> {
  const adminUrl = process.env["DATABASE_URL"];
  if (adminUrl) return { adminUrl, stop: async () => {} };
  // Each worker has gateways with dozens of connections, and some close while the next ones start.
  const embedded = await startEmbedded({ dataDir, log, testing: true, connections: 300 });
  return { adminUrl: embedded.url, stop: () => embedded.stop() };
}

/** Removes the folders of earlier runs that were killed, and stops their servers. */
async function removeLeftovers(parent: string): Promise<void> {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(prefix) || isAlive(Number(name.slice(prefix.length).split("-")[0])))
      continue;
    const dataDir = join(parent, name);
    if (statSync(dataDir).uid !== (process.getuid?.() ?? 0)) continue;
    if (existsSync(join(dataDir, "postgres"))) {
      const embedded = await startEmbedded({ dataDir, log, testing: true });
      await embedded.stop();
    }
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
