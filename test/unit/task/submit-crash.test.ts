/**
 * Processes that are killed while they accept a task: its client asks again, and has one task and
 * one hold.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPool } from "../../../src/db/pool/open-pool.ts";
import type { SubmitFailpoint } from "../../../src/task/submit/submit.ts";
import { compiledEnv } from "../../support/child.ts";
import { openSubmit } from "./submit-setup.ts";
import { openTasks, type Tasks } from "./worker-harness.ts";
import { one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
let gateway: ReturnType<typeof openSubmit>;
beforeAll(async () => {
  tasks = await openTasks();
  // With the limits of jobs: on a busy machine, submits of one account may wait for each other for
  // over a second.
  const pool = openPool(tasks.url, { max: 8, for: "jobs", isPipelined: true });
  gateway = openSubmit(tasks.url, { pool });
});
afterAll(async () => {
  await gateway.close();
  await tasks.close();
});

const points = ["submit.sent", "submit.held", "submit.committed"] as const;

describe("R-TSK-3, R-MON-2: a process that is killed in a submit", () => {
  test.each(points)(
    "a process is killed in a submit at %s, and a repetition finds or creates the one task",
    async (point) => {
      const accountId = await tasks.account(500n);
      const callbackId = `order-${point}`;
      expect(await die(accountId, callbackId, point)).toBe("SIGKILL");
      // Its work ends with its connection; a repetition waits for that.
      const { task, replayed } = await gateway.submit(accountId, callbackId);
      if (point === "submit.committed") expect(replayed).toBe(true);
      const { rows } = await tasks.pool.query<{ id: string }>(
        "select id from task where account_id = $1",
        [accountId],
      );
      expect(rows).toEqual([{ id: task.id }]);
      expect(await tasks.balance(accountId)).toEqual({ available: 400n, held: 100n });
      tasks.work(one({ v: vendor() }));
      expect(await tasks.ended([task.id])).toMatchObject([{ state: "completed", cost: "100" }]);
      await tasks.stopAll();
      expect(await tasks.balance(accountId)).toEqual({ available: 400n, held: 0n });
      await tasks.expectClean();
    },
  );

  test("concurrent repetitions are one task, and refused ones hold nothing", async () => {
    const accountId = await tasks.account(150n);
    const both = await Promise.all(
      Array.from({ length: 8 }, () => gateway.submit(accountId, "order-9")),
    );
    expect(new Set(both.map(({ task }) => task.id)).size).toBe(1);
    expect(both.filter(({ replayed }) => !replayed)).toHaveLength(1);
    await expect(gateway.submit(accountId, "order-10")).rejects.toMatchObject({
      meaning: { word: "insufficient_balance" },
    });
    // A repetition is one also if no money is left.
    expect(await gateway.submit(accountId, "order-9")).toMatchObject({ replayed: true });
    expect(await tasks.balance(accountId)).toEqual({ available: 50n, held: 100n });
    await tasks.expectClean();
  });

  test("repetitions with and without something that belongs to the task wait for each other, never in a circle", async () => {
    const accountId = await tasks.account(100_000n);
    const beside = { writeAlongside: async () => {} };
    for (let round = 0; round < 20; round++) {
      const callbackId = `mixed-${round}`;
      const both = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          gateway.submit(accountId, callbackId, n % 2 ? beside : {}),
        ),
      );
      expect(new Set(both.map(({ task }) => task.id)).size).toBe(1);
      expect(both.filter(({ replayed }) => !replayed)).toHaveLength(1);
    }
    expect(await tasks.balance(accountId)).toEqual({ available: 98_000n, held: 2_000n });
    await tasks.expectClean();
  });

  test("a failed write beside the task leaves neither task nor hold", async () => {
    const accountId = await tasks.account(500n);
    const writeAlongside = async (): Promise<void> => {
      throw new Error("beside");
    };
    await expect(gateway.submit(accountId, "order-11", { writeAlongside })).rejects.toThrow(
      "beside",
    );
    expect(await tasks.balance(accountId)).toEqual({ available: 500n, held: 0n });
    expect(await gateway.submit(accountId, "order-11")).toMatchObject({ replayed: false });
    expect(await tasks.balance(accountId)).toEqual({ available: 400n, held: 100n });
    await tasks.expectClean();
  });

  test("a submit without enough money creates no task", async () => {
    const accountId = await tasks.account(99n);
    const refused = { meaning: { word: "insufficient_balance" } };
    await expect(gateway.submit(accountId, "order-12")).rejects.toMatchObject(refused);
    const sql = "select 1 from task where account_id = $1";
    expect((await tasks.pool.query(sql, [accountId])).rows).toEqual([]);
    expect(await tasks.balance(accountId)).toEqual({ available: 99n, held: 0n });
    await tasks.expectClean();
  });
});

/** Submits in a process that dies there. Returns the signal that it died of. */
function die(
  accountId: string,
  callbackId: string,
  point: SubmitFailpoint,
): Promise<string | null> {
  const script = join(import.meta.dirname, "submit-crash-child.ts");
  const env = { ...process.env, ...compiledEnv };
  const args = [script, tasks.url, accountId, callbackId, point];
  const child = spawn(process.execPath, args, { stdio: "inherit", env });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (_code, signal) => resolve(signal));
  });
}
