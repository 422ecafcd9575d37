/** Processes that are killed with tasks in their hands. */
import { spawn, type StdioOptions } from "node:child_process";
import { join } from "node:path";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { crashTasks, type CrashVendor, type Resubmit, startCrashVendor } from "./crash-vendor.ts";
import { compiledEnv } from "../../support/child.ts";
import { openTasks } from "./worker-harness.ts";
import { one } from "./worker-setup.ts";
import type { WorkerFailpoint } from "../../../src/task/work/worker-options.ts";

/** Where a process dies, with a task of which kind. */
interface Crash {
  readonly point: WorkerFailpoint;
  readonly resubmit: Resubmit;
  /** The answer to its first submit is lost. */
  readonly isLost?: boolean;
  /** Its client asks to cancel it, once its vendor has it. */
  readonly isCancelled?: boolean;
}

const kinds = ["idempotent", "findable", "blind"] as const;
const submits = ["request.submit", "reply.submit", "accept.sent"] as const;
const looks = [
  "claim.answered",
  "accept.answered",
  "due.answered",
  "request.poll",
  "reply.poll",
  "progress.sent",
  "progress.answered",
  "produce.sent",
  "produce.answered",
  "file.stored",
  "complete.sent",
  "complete.answered",
] as const;
const crashes: readonly Crash[] = [
  ...submits.flatMap((point) => kinds.map((resubmit) => ({ point, resubmit }))),
  ...looks.map((point) => ({ point, resubmit: "blind" as const })),
  ...(["request.cancel", "reply.cancel", "cancel.sent", "cancel.answered"] as const).map(
    (point) => ({
      point,
      resubmit: "blind" as const,
      isCancelled: true,
    }),
  ),
  ...(["lose.sent", "lose.answered", "fail.sent", "fail.answered"] as const).map((point) => ({
    point,
    resubmit: "blind" as const,
    isLost: true,
  })),
  ...(["request.find", "reply.find"] as const).map((point) => ({
    point,
    resubmit: "findable" as const,
    isLost: true,
  })),
  ...(["resubmit.sent", "resubmit.answered"] as const).map((point) => ({
    point,
    resubmit: "idempotent" as const,
    isLost: true,
  })),
];

describe("R-TSK-7, R-TSK-9: a process that is killed at any failpoint loses no task and submits none twice", () => {
  let vendor: CrashVendor;
  beforeAll(async () => void (vendor = await startCrashVendor()));
  afterAll(() => vendor.close());

  test.concurrent.each(crashes)(
    "a process that is killed at $point loses no task and submits none twice ($resubmit)",
    { timeout: 180_000 },
    async (crash) => {
      const tasks = await openTasks();
      try {
        const account = await tasks.account(1_000n);
        const callbackUrl = "https://receiver.test/";
        const id = await tasks.submit({ accountId: account, callbackUrl });
        const { resubmit, isLost = false, isCancelled = false } = crash;
        if (isCancelled) await cancelOnceRunning(tasks.pool);
        expect(await die(crash, [tasks.url, vendor.url])).toBe("SIGKILL");
        const parts = {
          tasks: crashTasks(resubmit, vendor.url, isLost),
          maxInFlight: undefined,
          baseUrl: "",
        };
        tasks.work({ ...one({ v: parts }), timings: { settleMs: 100 } });
        const [row] = await tasks.ended([id]);
        await tasks.stopAll();
        const made = vendor.jobs.get(row?.attempt_token ?? "") ?? 0;
        expect(made).toBeLessThanOrEqual(1);
        const isUnknown = row?.error_code === "upstream_submit_unknown";
        if (isCancelled) expect(row?.state).toBe("cancelled");
        else if (resubmit === "blind" && isUnknown) expect(row?.state).toBe("failed");
        else expect([row?.state, made]).toEqual(["completed", 1]);
        const told = (await tasks.told(id)).map(({ status }) => status);
        expect(told.filter((status) => status !== "progress")).toEqual([row?.state]);
        expect(told.at(-1)).toBe(row?.state);
        const cost = BigInt(row?.cost ?? -1);
        expect(await tasks.balance(account)).toEqual({ available: 1_000n - cost, held: 0n });
        await tasks.expectClean();
      } finally {
        await tasks.stopAll();
        await tasks.close();
      }
    },
  );
});

/** Has tasks cancelled in the moment in which their vendor has taken them. */
async function cancelOnceRunning(pool: Pool): Promise<void> {
  await pool.query(`
    create function ask_for_cancel() returns trigger language plpgsql as $$
      begin new.cancel_requested := true; return new; end $$;
    create trigger ask_for_cancel before update on task for each row
      when (old.state <> 'running' and new.state = 'running') execute function ask_for_cancel()`);
}

/** Runs a worker until it dies. Returns the signal that it died of. */
function die(
  { resubmit, point, isLost = false }: Crash,
  urls: readonly string[],
): Promise<string | null> {
  const args = [join(import.meta.dirname, "crash-child.ts"), ...urls, resubmit, `${isLost}`, point];
  const env = { ...process.env, ...compiledEnv };
  const stdio: StdioOptions = ["inherit", "inherit", "inherit", "ipc"];
  const child = spawn(process.execPath, args, { stdio, env });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (_code, signal) => resolve(signal));
  });
}
