/**
 * The database of a gateway: started by the bench, so that it is not bound to the contestants'
 * core.
 */
import { join } from "node:path";
import { startEmbedded } from "../src/db/embedded/embedded.ts";
import { createDatabase, dropDatabase, withDatabase } from "../test/support/test-server.ts";

/** Cleanup at the end, newest first. */
export type Cleanup = Array<() => Promise<void> | void>;

/** A database without tables: the gateway migrates it when it starts. */
export interface BenchDatabase {
  readonly url: string;
  /** Environment by which the gateway uses it. */
  readonly env: Readonly<Record<string, string>>;
}

/** Makes one on the server of `DATABASE_URL`, else in an embedded server below `folder`. */
export async function openDatabase(folder: string, cleanup: Cleanup): Promise<BenchDatabase> {
  const url = await makeDatabase(folder, cleanup);
  return { url, env: { DATABASE_URL: url } };
}

async function makeDatabase(folder: string, cleanup: Cleanup): Promise<string> {
  const adminUrl = process.env["DATABASE_URL"];
  if (adminUrl) {
    const name = await createDatabase(adminUrl, "template1");
    cleanup.push(() => dropDatabase(adminUrl, name));
    return withDatabase(adminUrl, name);
  }
  const log = {
    info: (): void => {},
    warn: (line: string): void => void process.stderr.write(`${line}\n`),
  };
  const embedded = await startEmbedded({ dataDir: join(folder, "database"), log });
  cleanup.push(() => embedded.stop());
  return embedded.url;
}
