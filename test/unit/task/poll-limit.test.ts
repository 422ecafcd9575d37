/**
 * A vendor with a limit on polls: with many tasks each is polled less often, and all of them end.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTasks, type Tasks } from "./worker-harness.ts";
import { completed, one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => {
  tasks = await openTasks();
});
afterAll(() => tasks.close());

test("R-TSK-9: no second has more polls than the vendor allows, however many tasks are due at once", async () => {
  const accountId = await tasks.account(10_000n);
  const perSecond = 4;
  const asked = new Map<number, number>();
  const v = vendor({
    poll() {
      const second = Math.floor(performance.now() / 1_000);
      asked.set(second, (asked.get(second) ?? 0) + 1);
      return Promise.resolve(completed);
    },
  });
  const ids = await Promise.all(Array.from({ length: 12 }, () => tasks.submit({ accountId })));
  tasks.work(one({ v: { ...v, pollsPerSecond: perSecond } }));
  const ended = await tasks.ended(ids);
  expect(ended.map(({ state }) => state)).toEqual(ids.map(() => "completed"));
  expect(Math.max(...asked.values())).toBeLessThanOrEqual(perSecond);
  expect([...asked.values()].reduce((sum, count) => sum + count)).toBe(ids.length);
  await tasks.stopAll();
  await tasks.expectClean();
});
