/** Once per test run: a PostgreSQL server, and in it a template database with every migration applied. */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { openDatabase } from "../../src/db/database.ts";
import { startEmbedded } from "../../src/db/embedded.ts";
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
  const { adminUrl, stop } = await findServer();
  try {
    const template = await createDatabase(adminUrl, "template1");
    const database = await openDatabase(withDatabase(adminUrl, template));
    // A template must have no connections while it is copied.
    await database.close();
    project.provide("server", { adminUrl, template });
    return async () => {
      await dropDatabase(adminUrl, template);
      await stop();
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function findServer(): Promise<{ adminUrl: string; stop: () => Promise<void> }> {
  const adminUrl = process.env["DATABASE_URL"];
  if (adminUrl) return { adminUrl, stop: async () => {} };
  await removeLeftovers();
  const dataDir = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  // Each worker has gateways with dozens of connections, and some close while the next ones start.
  const embedded = await startEmbedded({ dataDir, log, testing: true, connections: 300 });
  return {
    adminUrl: embedded.url,
    async stop() {
      await embedded.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Stops and removes the servers of earlier runs that were killed. */
async function removeLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(prefix) || isAlive(Number(name.slice(prefix.length).split("-")[0])))
      continue;
    const dataDir = join(tmpdir(), name);
    if (statSync(dataDir).uid !== (process.getuid?.() ?? 0)) continue;
    const embedded = await startEmbedded({ dataDir, log, testing: true });
    await embedded.stop();
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
