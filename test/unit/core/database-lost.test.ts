import { connect } from "node:net";
import { Client, DatabaseError } from "pg";
import { expect, onTestFinished, test } from "vitest";
import {
  mapDatabaseLoss,
  databaseUnavailable,
  isDatabaseLost,
} from "../../../src/core/database-lost.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { createTestDatabase } from "../../support/database.ts";
import { withDatabase } from "../../support/test-server.ts";

function reported(code: string): DatabaseError {
  return Object.assign(new DatabaseError("said", 4, "error"), { code, severity: "ERROR" });
}

test("R-MON-7: an unreachable database is distinguished from a failed statement", async () => {
  const { promise, resolve } = Promise.withResolvers<Error>();
  connect({ host: "127.0.0.1", port: 1 }).once("error", resolve);
  expect(isDatabaseLost(await promise)).toBe(true);
  expect(isDatabaseLost(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }))).toBe(true);
  expect(isDatabaseLost(new Error("Connection terminated unexpectedly"))).toBe(true);
  expect(isDatabaseLost(new Error("Query read timeout"))).toBe(true);
  for (const code of [
    "57P01",
    "57P03",
    "53300",
    "58030",
    "08006",
    "25006",
    "57014",
    "55P03",
    "40P01",
  ]) {
    expect(isDatabaseLost(reported(code))).toBe(true);
  }
  for (const code of ["23505", "42P01", "55000", "XX000"]) {
    expect(isDatabaseLost(reported(code))).toBe(false);
  }
  expect(isDatabaseLost(new TypeError("x is not a function"))).toBe(false);
  expect(isDatabaseLost(databaseUnavailable())).toBe(false);
  expect(isDatabaseLost(databaseUnavailable(reported("57P01")))).toBe(true);
  expect(isDatabaseLost("text")).toBe(false);
});

test("R-MON-7: whatever refuses a connection is an unreachable database: 55000 of one that allows none, an unknown name or password", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const admin = new Client({ connectionString: withDatabase(scratch.url, "postgres") });
  await admin.connect();
  const name = new Client({ connectionString: scratch.url }).database ?? "";
  const allow = (is: boolean) => admin.query(`alter database "${name}" allow_connections ${is}`);
  try {
    await allow(false);
    const refused = await refusal(scratch.url);
    expect(refused).toMatchObject({ code: "55000" });
    expect(isDatabaseLost(refused)).toBe(true);
  } finally {
    await allow(true);
    await admin.end();
  }
  const unknown = await refusal(withDatabase(scratch.url, "no_such_database"));
  expect(unknown).toMatchObject({ code: "3D000" });
  expect(isDatabaseLost(unknown)).toBe(true);
});

/** The error of a connection that fails. */
async function refusal(connectionString: string): Promise<unknown> {
  const client = new Client({ connectionString });
  const error: unknown = await client.connect().catch((reason: unknown) => reason);
  await client.end().catch(() => {});
  return error;
}

test("R-MON-7: work on an unreachable database is 503, other failures stay", async () => {
  await expect(mapDatabaseLoss(Promise.reject(reported("57P01")))).rejects.toMatchObject({
    code: ErrorCode.SERVICE_UNAVAILABLE,
  });
  const other = reported("23505");
  await expect(mapDatabaseLoss(Promise.reject(other))).rejects.toBe(other);
  await expect(mapDatabaseLoss(Promise.resolve(1))).resolves.toBe(1);
});
