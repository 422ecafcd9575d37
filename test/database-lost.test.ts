import { connect } from "node:net";
import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { mapDatabaseLoss, databaseUnavailable, isDatabaseLost } from "../src/core/database-lost.ts";
import { ErrorCode } from "../src/core/errors.ts";

function reported(code: string): DatabaseError {
  return Object.assign(new DatabaseError("said", 4, "error"), { code, severity: "ERROR" });
}

test("R-MON-7: an unreachable database is told from a failed statement", async () => {
  const { promise, resolve } = Promise.withResolvers<Error>();
  connect({ host: "127.0.0.1", port: 1 }).once("error", resolve);
  expect(isDatabaseLost(await promise)).toBe(true);
  expect(isDatabaseLost(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }))).toBe(true);
  expect(isDatabaseLost(new Error("Connection terminated unexpectedly"))).toBe(true);
  expect(isDatabaseLost(new Error("Query read timeout"))).toBe(true);
  for (const code of ["57P01", "57P03", "53300", "08006"]) {
    expect(isDatabaseLost(reported(code))).toBe(true);
  }
  for (const code of ["23505", "42P01", "57014", "XX000"]) {
    expect(isDatabaseLost(reported(code))).toBe(false);
  }
  expect(isDatabaseLost(new TypeError("x is not a function"))).toBe(false);
  expect(isDatabaseLost(databaseUnavailable())).toBe(false);
  expect(isDatabaseLost("text")).toBe(false);
});

test("R-MON-7: work on an unreachable database is 503, other failures stay", async () => {
  await expect(mapDatabaseLoss(Promise.reject(reported("57P01")))).rejects.toMatchObject({
    code: ErrorCode.SERVICE_UNAVAILABLE,
  });
  const other = reported("23505");
  await expect(mapDatabaseLoss(Promise.reject(other))).rejects.toBe(other);
  await expect(mapDatabaseLoss(Promise.resolve(1))).resolves.toBe(1);
});
