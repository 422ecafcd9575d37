/**
 * Whole gateways before a simulated vendor of pictures, and clients that submit tasks and repeat
 * what got no answer.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "pg";
import { startFal } from "../fuzz/vendors.ts";
import { createServices } from "../../behaviour/lifecycle/services.ts";
import { send } from "../../support/raw-http.ts";
import { chargesSql, type Checked, type Findings, note, noteAudit } from "./check.ts";
import { Child } from "./child.ts";
import { createRandom } from "./plan.ts";
import type { Site } from "./site.ts";
import type { Work } from "./work.ts";

/** Accounts that submit: each runs at most 20 tasks at once. */
const accounts = 8;

/** The longest time from a job at the vendor to its answer: a kill hits some of them in between. */
const answerMsMax = 200;

/** Pause of a client that is not served. */
const pauseMs = 20;

/** The share of answered submits that a client repeats all the same. */
const repeatShare = 0.1;

/** A task as its client knows it. */
interface Submitted {
  readonly callbackId: string;
  readonly key: string;
  /** The ids in the answers; `undefined` if none came yet. More than one is a task too many. */
  readonly taskIds: Set<string>;
}

/** Opens it: a vendor, customers, and clients as long as there are processes. */
export async function openSubmitWork(site: Site): Promise<Work> {
  const vendor = await startFal(() => Math.random() * answerMsMax);
  const services = createServices(site.directUrl);
  const keys: string[] = [];
  for (let count = 0; count < accounts; count++) keys.push((await services.customer()).key);
  const submitted: Submitted[] = [];
  /** Submits without an answer: the client repeats them at the next process. */
  const unanswered: Submitted[] = [];
  const clients: Promise<void>[] = [];
  const { url, dataDir } = site;

  /** One submit after another, as long as the process lives. */
  const runClient = async (child: Child, address: string, seed: number): Promise<void> => {
    const random = createRandom(seed);
    while (child.isRunning) {
      const task = unanswered.shift() ?? create(keys[Math.floor(random() * accounts)] ?? "");
      if (!(await submit(address, task))) {
        unanswered.push(task);
        await sleep(pauseMs);
      } else if (random() < repeatShare) {
        await submit(address, task);
      }
    }
  };
  const create = (key: string): Submitted => {
    const task = { callbackId: randomUUID(), key, taskIds: new Set<string>() };
    submitted.push(task);
    return task;
  };

  return {
    passesMax: 12,
    async start(orders) {
      const { origin, secret } = vendor;
      const plan = { url, dataDir, accountIds: [], history: "", ...orders };
      const child = Child.start("gateway-child", {
        ...plan,
        vendor: { kind: "fal", baseUrl: origin, secret },
      });
      const address = await child.ready();
      if (address === undefined) return child;
      for (let index = 0; index < orders.workers; index++) {
        clients.push(runClient(child, address, orders.seed + index));
      }
      return child;
    },
    async check(findings) {
      await Promise.all(clients);
      const prompts = vendor.requests
        .filter(({ method }) => method === "POST")
        .map(({ json }) => String(json?.["prompt"]));
      return checkTasks(site.pool, { submitted, prompts }, findings);
    },
    close: () => vendor.close(),
  };
}

/** Submits it, and notes the task's id. Returns whether there was an answer. */
async function submit(address: string, { callbackId, key, taskIds }: Submitted): Promise<boolean> {
  const imageParams = { prompt: callbackId };
  try {
    const { status, body, isCut } = await send(`${address}/api/ai/tasks`, {
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ modelKey: "m", callbackId, imageParams }),
    });
    if (status !== 200 || isCut) return false;
    taskIds.add((JSON.parse(body.toString()) as { readonly taskId: string }).taskId);
    return true;
  } catch {
    return false;
  }
}

/** The database's state of a task. */
interface TaskFacts {
  readonly id: string;
  readonly callback_id: string;
  readonly state: string;
  readonly error_code: string | null;
  readonly cost: string | null;
  readonly charged: string;
}

/** Observations of clients and of the vendor. */
interface Seen {
  readonly submitted: readonly Submitted[];
  /** The prompt of each submit that reached the vendor: the task's `callbackId`. */
  readonly prompts: readonly string[];
}

/** Compares the tasks with the answers of their clients, and with the work of the vendor. */
async function checkTasks(
  pool: Pool,
  { submitted, prompts }: Seen,
  findings: Findings,
): Promise<Checked> {
  const { rows } = await pool.query<TaskFacts>(`
    select t.id, t.callback_id, t.state, t.error_code, t.cost::text as cost,
        coalesce(e.charged, 0)::text as charged
      from task t left join ${chargesSql} e on e.id = t.id`);
  const tasks = Map.groupBy(rows, ({ callback_id: callbackId }) => callbackId);
  const made = Map.groupBy(prompts, (prompt) => prompt);
  let answered = 0;
  for (const { callbackId, taskIds } of submitted) {
    if (taskIds.size > 0) answered++;
    const found = tasks.get(callbackId) ?? [];
    if (found.length > 1) note(findings, "doubled", `${callbackId} became ${found.length} tasks`);
    if (taskIds.size > found.length) {
      note(findings, "lost", `${callbackId} was answered with ${[...taskIds].join(" and ")}`);
    }
    const submits = made.get(callbackId)?.length ?? 0;
    if (submits > 1) note(findings, "doubled", `${callbackId} was submitted ${submits} times`);
    for (const task of found) checkTask(task, submits, findings);
  }
  await noteAudit(pool, findings);
  return { calls: submitted.length, settled: answered };
}

function checkTask(task: TaskFacts, submits: number, findings: Findings): void {
  const { id, state, error_code: code, cost, charged } = task;
  // The vendor does not report whether it received a submit whose process died: such a task fails,
  // and is not sent again.
  const isRight =
    (state === "completed" && submits === 1) ||
    (state === "failed" && code === "upstream_submit_unknown");
  if (!isRight) {
    note(findings, "lost", `task ${id} is ${state} (${code}), submitted ${submits} times`);
  }
  if (charged !== (cost ?? "0")) {
    note(findings, "drift", `task ${id} costs ${cost}, charged ${charged}`);
  }
}
