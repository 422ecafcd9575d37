/** The wait for work of several statements. */
import { expect, test } from "vitest";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { whileAnswering } from "../../../../src/task/submit/while-answering.ts";

test("R-MON-7: work is refused once the database has been silent for a time, and its late result is reported", async () => {
  const result = Promise.withResolvers<string>();
  const late = Promise.withResolvers<string>();
  let isRefused = (): boolean => false;
  const limit = { limitMs: 50, hasAnswered: () => false, onLate: late.resolve };
  const work = whileAnswering(limit, (asks) => {
    isRefused = asks;
    return result.promise;
  });
  await expect(work).rejects.toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE });
  expect(isRefused()).toBe(true);
  result.resolve("late");
  expect(await late.promise).toBe("late");
});

test("R-MON-7: work waits on while the database answers others", async () => {
  const result = Promise.withResolvers<string>();
  let questions = 0;
  const hasAnswered = (): boolean => {
    // More often than the limit has steps.
    if (++questions === 30) result.resolve("done");
    return true;
  };
  const work = whileAnswering({ limitMs: 50, hasAnswered, onLate: () => {} }, () => result.promise);
  expect(await work).toBe("done");
});
