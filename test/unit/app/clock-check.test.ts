/** The comparison of the machine's clock with the database's. */
import { expect, test } from "vitest";
import { ClockCheck } from "../../../src/app/clock-check.ts";

/**
 * A check of a machine whose clock is off by so many milliseconds; each answer of the database
 * takes `answerMs`.
 */
function open(answerMs = 0) {
  let offMs = 0;
  let timeMs = Date.parse("2026-01-01T00:00:00Z");
  const alarms: string[] = [];
  const pool = {
    query: () => {
      timeMs += answerMs;
      const now = new Date(timeMs);
      timeMs += answerMs;
      return Promise.resolve({ rows: [{ now }] });
    },
  };
  const check = new ClockCheck({
    pool: pool as never,
    clock: { now: () => timeMs + offMs },
    alarm: (message) => void alarms.push(message),
    warn: () => {},
  });
  const compare = async (ms: number): Promise<string | undefined> => {
    offMs = ms;
    await check.compare();
    return check.problem;
  };
  return { check, compare, alarms };
}

test("a clock that is at most 5 s off is no problem (R-OPS-3)", async () => {
  const { compare, alarms } = open();
  for (const offMs of [0, 100, -100, 5_000, -5_000]) expect(await compare(offMs)).toBeUndefined();
  expect(alarms).toEqual([]);
});

test("a clock that is more than 5 s off is a problem with its figure, and one alarm (R-OPS-3)", async () => {
  const { check, compare, alarms } = open();
  expect(await compare(12_000)).toBe(
    "the clock of this machine is 12 s ahead of the database's; set both by NTP",
  );
  expect(check.aheadMs).toBe(12_000);
  expect(await compare(-86_400_000)).toBe(
    "the clock of this machine is 86400 s behind the database's; set both by NTP",
  );
  expect(alarms).toHaveLength(1);
});

test("a clock that was set right is no problem, and the next time it is wrong is another alarm", async () => {
  const { compare, alarms } = open();
  await compare(12_000);
  expect(await compare(0)).toBeUndefined();
  await compare(-12_000);
  expect(alarms).toHaveLength(2);
});

test("the time that the database takes to answer does not count as a difference", async () => {
  const { compare } = open(30_000);
  expect(await compare(0)).toBeUndefined();
  expect(await compare(29_000)).toBeUndefined();
  expect(await compare(36_000)).toBe(
    "the clock of this machine is 6 s ahead of the database's; set both by NTP",
  );
});
