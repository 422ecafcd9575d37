/** How long the first attempt of a webhook waits while many receivers hang. */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { createGuardedClient } from "../src/http/guarded-client.ts";
import { createDispatcher } from "../src/webhook/dispatcher.ts";
import { enqueueWebhook } from "../src/webhook/enqueue.ts";
import { createSecrets } from "../src/webhook/secrets.ts";
import { ca } from "../test/support/receiver.ts";
import type { Child } from "./child.ts";
import type { Arrival, ReceiverPorts } from "./webhook-receivers.ts";
import { newId } from "../src/core/uuid.ts";

/** What {@link benchWebhooks} needs. */
export interface WebhookBenchOptions {
  /** A migrated database that may be filled with rows. */
  readonly url: string;
  /** The process of webhook-receivers.ts. */
  readonly receivers: Child;
  /** How long events come, in milliseconds. */
  readonly durationMs: number;
}

/** What was measured. */
export interface WebhookBenchResult {
  /** Events to receivers that answer, and those of them that arrived. */
  readonly sent: number;
  readonly arrived: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU microseconds of the sending process per attempt, those that hang included. */
  readonly cpuUsPerAttempt: number;
}

/** Receivers, events a second to each kind, and how many may be under way: hung ones alone would take three
 * times as many. */
const healthyCount = 200;
const hungCount = 60;
const healthyPerSecond = 40;
const hungPerSecond = 60;
const slots = 100;

/** Time for connections and hot code before what is measured, in milliseconds. */
const warmUpMs = 3_000;

/** How long the last events may take to arrive, in milliseconds. */
const settleMs = 2_000;

/** Sends to 260 receivers, 60 of which never answer, and measures the others. */
export async function benchWebhooks(options: WebhookBenchOptions): Promise<WebhookBenchResult> {
  const { url, receivers, durationMs } = options;
  const counts = { healthy: healthyCount, hung: hungCount };
  const ports = await receivers.ask<ReceiverPorts>("listen", counts);
  const pool = new Pool({ connectionString: url, max: 4 });
  // Of the tasks, so to say: they do not wait for the sending, nor it for them.
  const tasks = new Pool({ connectionString: url, max: 16 });
  let attempts = 0;
  const dispatcher = createDispatcher({
    pool,
    url,
    client: createGuardedClient({ allowHosts: ["127.0.0.1"], ca: [ca] }),
    secrets: createSecrets({ pool, masterKey: () => Buffer.alloc(32, 1) }),
    slots: { node: slots },
    onAttempt: () => void attempts++,
  });
  await dispatcher.start();
  try {
    const cpu = process.cpuUsage();
    const begunMs = Date.now();
    const [sent] = await Promise.all([
      enqueue(tasks, { ports: ports.healthy, perSecond: healthyPerSecond, durationMs }),
      enqueue(tasks, { ports: ports.hung, perSecond: hungPerSecond, durationMs }),
    ]);
    await sleep(settleMs);
    const { user, system } = process.cpuUsage(cpu);
    const arrivals = await receivers.ask<Arrival[]>("arrivals");
    const measured = arrivals.filter(([timeMs]) => timeMs >= begunMs + warmUpMs);
    const delays = measured.map(([, delayMs]) => delayMs).toSorted((a, b) => a - b);
    const at = (share: number): number => delays[Math.floor(delays.length * share)] ?? Infinity;
    const cpuUsPerAttempt = (user + system) / attempts;
    return { sent, arrived: arrivals.length, p50Ms: at(0.5), p99Ms: at(0.99), cpuUsPerAttempt };
  } finally {
    await dispatcher.stop();
    await Promise.all([pool.end(), tasks.end()]);
  }
}

interface Load {
  readonly ports: readonly number[];
  readonly perSecond: number;
  readonly durationMs: number;
}

/** Ends of tasks, one after the other to each receiver, at an even pace. Returns how many. */
async function enqueue(pool: Pool, { ports, perSecond, durationMs }: Load): Promise<number> {
  const accounts = Array.from({ length: 26 }, () => newId());
  const begun = performance.now();
  const running: Promise<void>[] = [];
  for (let sent = 0; ; sent++) {
    const atMs = (sent * 1_000) / perSecond;
    if (atMs >= durationMs) {
      await Promise.all(running);
      return sent;
    }
    await sleep(Math.max(0, atMs - (performance.now() - begun)));
    const index = sent % ports.length;
    running.push(enqueueOne(pool, accounts[index % accounts.length] ?? "", ports[index] ?? 0));
  }
}

async function enqueueOne(pool: Pool, accountId: string, port: number): Promise<void> {
  const client = await pool.connect();
  await client.query("begin");
  await enqueueWebhook(client, {
    accountId,
    taskId: newId(),
    url: `https://127.0.0.1:${port}/hook`,
    callbackId: "bench",
    status: "completed",
    progress: 100,
    resultUrl: null,
    resultContent: "text",
    error: null,
    errorCode: null,
    usage: { promptTokens: 1, completionTokens: 2, totalTokens: 3 },
    modelKey: "bench",
    requestId: "bench",
    time: new Date(),
  });
  await client.query("commit");
  client.release();
}
