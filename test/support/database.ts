/** A PostgreSQL database for one test file or one test. */
import { inject } from "vitest";
import { createDatabase, dropDatabase, withDatabase } from "./test-server.ts";

/** A database that only its test uses. */
export interface TestDatabase {
  readonly url: string;
  /** Drops it. Rejects while connections are open: close their owners first. */
  close(): Promise<void>;
}

/** Makes a database with every migration applied: a copy of the run's template, about 20 ms. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { adminUrl, template } = inject("server");
  const name = await createDatabase(adminUrl, template);
  return { url: withDatabase(adminUrl, name), close: () => dropDatabase(adminUrl, name) };
}

/** Makes a database without any table: for tests of the migrations themselves. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const { adminUrl } = inject("server");
  const name = await createDatabase(adminUrl, "template1");
  return { url: withDatabase(adminUrl, name), close: () => dropDatabase(adminUrl, name) };
}
