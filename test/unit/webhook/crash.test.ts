/** R-HOOK-3: what a killed process leaves is sent by the next one. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { DispatchFailpoint } from "../../../src/webhook/delivery.ts";
import { compiledEnv } from "../../support/child.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { openWebhooks, type Webhooks } from "./harness.ts";
import { newId } from "../../../src/core/uuid.ts";

/**
 * The point at which each process dies, and how often it passes it before. A process that dies
 * during recovery must follow one that certainly leaves something: a death at `record.answered`
 * leaves nothing in one of fifteen cases.
 */
const deaths: readonly (readonly [DispatchFailpoint, number])[] = [
  ["claim.sent", 1],
  ["claim.answered", 1],
  ["attempt.begun", 3],
  ["recover.done", 1],
  ["attempt.answered", 3],
  ["record.sent", 3],
  ["record.answered", 3],
];

let webhooks: Webhooks;
let receiver: Receiver;
const children = new Set<ChildProcess>();
/** A test that took too long goes on after its file: it must start nothing any more. */
let isOver = false;

beforeAll(async () => {
  webhooks = await openWebhooks();
  receiver = await startReceiver();
});
afterAll(async () => {
  isOver = true;
  for (const child of children) child.kill("SIGKILL");
  await receiver.close();
  await webhooks.close();
});

const env = { ...process.env, ...compiledEnv };

/** Starts a process that sends. Resolves to its child, and to the signal that ended it. */
function start(point = "", times = 1) {
  const script = join(import.meta.dirname, "crash-child.ts");
  const args = [script, webhooks.url, point, String(times)];
  if (isOver) throw new Error("the test is over");
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env,
  });
  children.add(child);
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once("close", (_code, signal) => {
      children.delete(child);
      resolve(signal);
    });
  });
  return { child, ended };
}

/** A task's events, each in a separate transaction. */
async function enqueueTask(taskId: string): Promise<void> {
  const task = { url: `${receiver.origin}/`, taskId, accountId };
  await webhooks.enqueue({ ...task, status: "progress", progress: 10 });
  await webhooks.enqueue({ ...task, status: "progress", progress: 20 });
  await webhooks.enqueue(task);
}

const accountId = newId();

interface Body {
  readonly status: string;
  readonly progress: number;
  readonly external_data: { readonly task_id: string; readonly event_id: string };
}

it("kill -9 at seven points: every end arrives, and no progress after it", async () => {
  const tasks: string[] = [];
  for (const [point, times] of deaths) {
    const more = Array.from({ length: 6 }, () => newId());
    tasks.push(...more);
    const { ended } = start(point, times);
    await Promise.all(more.map(enqueueTask));
    expect(await ended, point).toBe("SIGKILL");
  }
  const last = start();
  // Over only when nothing is on its way any more.
  const open = "select from webhook_delivery where state in (1, 2)";
  while ((await webhooks.pool.query(open)).rows.length > 0) await sleep(10);
  last.child.kill("SIGKILL");
  await last.ended;
  const bodies = receiver.received.map(({ body }) => JSON.parse(body.toString()) as Body);
  for (const taskId of tasks) {
    const own = bodies.filter(({ external_data: data }) => data.task_id === taskId);
    const firstEnd = own.findIndex(({ status }) => status === "completed");
    expect(firstEnd, "the end has arrived").toBeGreaterThanOrEqual(0);
    expect(own.slice(firstEnd).every(({ status }) => status === "completed")).toBe(true);
    const progress = own.map((body) => body.progress);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  }
  // At least once: what was sent but not written down came again, with the same bytes.
  const bytes = new Map<string, string>();
  for (const { body, headers } of receiver.received) {
    const id = String(headers["webhook-id"]);
    expect(bytes.get(id) ?? body.toString()).toBe(body.toString());
    bytes.set(id, body.toString());
  }
  expect(receiver.received.length).toBeGreaterThan(bytes.size);
});
