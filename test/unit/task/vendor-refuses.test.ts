/** Tasks of vendors that refuse the operator's own account (R-ERR-3). */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { VendorAlarm } from "../../../src/task/work/worker-options.ts";
import { TaskRefused } from "../../../src/provider/task.ts";
import { openTasks, type Tasks } from "./worker-harness.ts";
import { imageNanos, one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

/** A vendor out of money, until it is paid. */
function unpaid() {
  const said = { isPaid: false };
  const about = { fault: "money" } as const;
  const broke = vendor({
    submit: ({ attemptToken }) =>
      said.isPaid
        ? Promise.resolve({ vendorTaskId: attemptToken })
        : Promise.reject(new TaskRefused("upstream_error", "out of service", true, about)),
  });
  return { said, broke };
}

test("R-ERR-3: where every vendor refuses the operator's account, tasks end with upstream_error, long before their deadline", async () => {
  const accountId = await tasks.account(10n * imageNanos);
  const ids = await Promise.all(Array.from({ length: 8 }, () => tasks.submit({ accountId })));
  const { broke } = unpaid();
  const alarms: VendorAlarm[] = [];
  tasks.work({
    ...one({ broke }),
    onAlarm: (alarm) => void alarms.push(alarm),
    timings: { faultMs: 300, faultPauseMs: 3_600_000, pollMs: 3_600_000, pollMsMax: 5 },
  });
  for (const ended of await tasks.ended(ids)) {
    expect(ended).toMatchObject({
      state: "failed",
      error_code: "upstream_error",
      error: "out of service",
      cost: "0",
    });
  }
  // Requests in flight at the first refusal; none follows.
  expect(broke.asked.length).toBeLessThanOrEqual(8);
  expect(new Set(broke.asked).size).toBe(broke.asked.length);
  expect(alarms.filter(({ isNew }) => isNew)).toEqual([
    { vendor: "broke", model: "m@broke", fault: "money", isNew: true },
  ]);
});

test("R-ERR-3: waiting tasks continue when the vendor accepts the operator's account again", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const { said, broke } = unpaid();
  const warned: string[] = [];
  tasks.work({
    ...one({ broke }),
    onAlarm: () => void (said.isPaid = broke.asked.length > 2),
    warn: (message) => void warned.push(message),
  });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
  expect(warned).toEqual(["a vendor accepts tasks again"]);
});

test("R-ERR-3: a task keeps waiting where another vendor of its model has no capacity", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const { broke } = unpaid();
  let tries = 0;
  const full = vendor({
    submit: ({ attemptToken }) =>
      ++tries < 4
        ? Promise.reject(new TaskRefused("upstream_error", "later", true))
        : Promise.resolve({ vendorTaskId: attemptToken }),
  });
  tasks.work({ ...one({ full, broke }), timings: { faultMs: 0 } });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", vendor: "full" }]);
});
