/** A database for one long run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";
import { whenInterrupted } from "../../support/interrupted.ts";
import { createDatabase, dropDatabase, withDatabase } from "../../support/test-server.ts";

/**
 * Runs `work` with an empty database, on the server of `DATABASE_URL` or an embedded one, and
 * removes it after.
 */
export async function withServer(work: (databaseUrl: string) => Promise<void>): Promise<void> {
  const adminUrl = process.env["DATABASE_URL"];
  if (adminUrl) return withNewDatabase(adminUrl, work);
  const dataDir = mkdtempSync(join(tmpdir(), "uas-fuzz-server-"));
  const log = { info() {}, warn: (line: string) => void process.stderr.write(`${line}\n`) };
  const embedded = await startEmbedded({ dataDir, log, testing: true });
  try {
    await Promise.race([withNewDatabase(embedded.url, work), whenInterrupted()]);
  } finally {
    await embedded.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function withNewDatabase(
  adminUrl: string,
  work: (databaseUrl: string) => Promise<void>,
): Promise<void> {
  const name = await createDatabase(adminUrl, "template1");
  try {
    await work(withDatabase(adminUrl, name));
  } finally {
    await dropDatabase(adminUrl, name);
  }
}
