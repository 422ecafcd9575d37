/** The database of one bench run: started here, so that it is not bound to the contestants' core. */
import { join } from "node:path";
import { openDatabase } from "../src/db/database.ts";
import { startEmbedded } from "../src/db/embedded/embedded.ts";
import { createDatabase, dropDatabase, withDatabase } from "../test/support/test-server.ts";

/** A database that may be filled. */
export interface BenchDatabase {
  readonly url: string;
  /** What makes the gateway use it. */
  readonly env: Readonly<Record<string, string>>;
  /** May be called twice. */
  close(): Promise<void>;
}

/** Makes one on the server of `DATABASE_URL`, else in an embedded server below `folder`. */
export async function openBenchDatabase(folder: string): Promise<BenchDatabase> {
  const database = await openEmptyDatabase(folder);
  await (await openDatabase(database.url)).close();
  return database;
}

/** The same without a table: a gateway migrates it when it starts. */
export async function openEmptyDatabase(folder: string): Promise<BenchDatabase> {
  const adminUrl = process.env["DATABASE_URL"];
  if (adminUrl) {
    const name = await createDatabase(adminUrl, "template1");
    const url = withDatabase(adminUrl, name);
    return { url, env: { DATABASE_URL: url }, close: () => dropDatabase(adminUrl, name) };
  }
  const log = {
    info: (): void => {},
    warn: (line: string): void => void process.stderr.write(`${line}\n`),
  };
  const embedded = await startEmbedded({ dataDir: join(folder, "database"), log });
  let stopped: Promise<void> | undefined;
  const close = (): Promise<void> => (stopped ??= embedded.stop());
  return { url: embedded.url, env: { DATABASE_URL: embedded.url }, close };
}
