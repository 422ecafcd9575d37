/** Tasks: how many submits are accepted a second, how soon an end is told, and what those in flight take. */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { taskAccountRunningMax } from "../src/core/limits.ts";
import { caFile } from "../test/support/receiver.ts";
import type { ProcessFigures } from "./answer.ts";
import type { Child } from "./child.ts";
import type { BenchDatabase } from "./database.ts";
import { audit, type Installation, installWith, operate, serve } from "./gateway.ts";
import type { TaskFlight } from "./options.ts";
import type { SubmitResult, TaskPorts } from "./task-load.ts";

/** What {@link benchTasks} needs. */
export interface TaskBenchOptions {
  readonly folder: string;
  readonly database: BenchDatabase;
  /** The process of task-load.ts. */
  readonly load: Child;
  /** How long tasks are submitted, in milliseconds. */
  readonly durationMs: number;
  readonly flight: TaskFlight;
  /** Takes the gateway, to be stopped whatever happens. */
  readonly keep: (gateway: Child) => Child;
}

/** What was measured. */
export interface TaskBenchResult {
  readonly submits: SubmitResult;
  /** CPU microseconds of the gateway's process per submit, with what else it did for tasks meanwhile. */
  readonly cpuUsPerSubmit: number;
  /** From a submit to the webhook of its end, beyond the vendor's own time. */
  readonly end: { readonly p50Ms: number; readonly p99Ms: number };
  /** How many tasks a vendor had at once, and the most resident memory of the gateway with them; and before
   * the first. */
  readonly flight: Flight & { readonly rssBeforeBytes: number };
}

interface Flight {
  readonly tasks: number;
  readonly rssBytes: number;
}

/** Accounts that submit at once, and submits under way at once. */
const submitAccounts = 50;
const submitConnections = 64;

/** How many ends are awaited before the first that is timed. */
const endWarmUp = 5;

/** What the demo vendor takes for a picture by itself, in milliseconds. */
const demoMs = 300;

/** What of the tasks in flight must be there: a submit that is tried again is another account's, which may have enough. */
const flightShare = 0.99;

/** How long they may take to get there, in milliseconds. */
const fillMs = 180_000;

const held = "bench/held";
const picture = "bench/picture";

/** Measures it on a gateway of its own. */
export async function benchTasks(options: TaskBenchOptions): Promise<TaskBenchResult> {
  const { load, durationMs, keep } = options;
  const ports = await load.ask<TaskPorts>("listen");
  const installation = await install(options, ports);
  const first = keep(await serve(installation));
  const operator = operate(installation);
  const keys: string[] = [];
  for (let made = 0; made < options.flight.tasks / taskAccountRunningMax; made++) {
    keys.push(await operator.createKey(await operator.createAccount(`bench ${made}`)));
  }
  const { port } = installation;
  const ends = { port, key: keys[0], model: picture, count: options.flight.ends + endWarmUp };
  const end = endsOf(await load.ask<number[]>("ends", ends));
  await first.stop();
  // Another one: what the demo vendor's drawing takes is not what tasks take that wait for theirs.
  const gateway = keep(await serve(installation));
  const before = await gateway.ask<ProcessFigures>("figures");
  const submits = await load.ask<SubmitResult>("submit", {
    port,
    keys: keys.slice(0, submitAccounts),
    model: held,
    connections: submitConnections,
    count: Number.MAX_SAFE_INTEGER,
    durationMs,
  });
  const after = await gateway.ask<ProcessFigures>("figures");
  const flight = await fill(options, { gateway, port, keys });
  await audit(installation);
  await gateway.stop();
  const cpuUsPerSubmit = (after.cpuMicros - before.cpuMicros) / submits.accepted;
  return { submits, cpuUsPerSubmit, end, flight: { ...flight, rssBeforeBytes: before.rssBytes } };
}

function endsOf(times: readonly number[]): TaskBenchResult["end"] {
  const sorted = times.slice(endWarmUp).toSorted((a, b) => a - b);
  const at = (share: number): number => (sorted[Math.floor(sorted.length * share)] ?? 0) - demoMs;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}

function install(
  { folder, database }: TaskBenchOptions,
  { vendor }: TaskPorts,
): Promise<Installation> {
  const model = (name: string, route: string): string =>
    `  ${name}: { type: IMAGE, routes: [${route}], price: { image: "0.001" } }`;
  const lines = [
    "vendors:",
    "  demo: { kind: demo }",
    `  held: { kind: replicate, base_url: "http://127.0.0.1:${vendor}", api_key: "\${env:BENCH_KEY}", polls_per_second: 10000 }`,
    "models:",
    model(held, "{ vendor: held, model: bench/held }"),
    model(picture, "{ vendor: demo, model: image }"),
    `webhooks: { allow_hosts: ["127.0.0.1"], ca_file: ${JSON.stringify(caFile)} }`,
  ];
  return installWith({ folder, database, lines });
}

interface Filling {
  readonly gateway: Child;
  readonly port: number;
  readonly keys: readonly string[];
}

/** Brings so many tasks to a vendor, and watches what the gateway takes while it asks how they stand. */
async function fill(
  { load, database, flight }: TaskBenchOptions,
  { gateway, port, keys }: Filling,
): Promise<Flight> {
  const pool = new Pool({ connectionString: database.url, max: 1 });
  const running = async (): Promise<number> => {
    const sql = "select count(*)::int as count from task where state = 'running'";
    return (await pool.query<{ count: number }>(sql)).rows[0]?.count ?? 0;
  };
  try {
    const more = { port, model: held, connections: submitConnections, durationMs: fillMs };
    await load.ask("submit", { ...more, keys, count: flight.tasks });
    const enough = flight.tasks * flightShare;
    for (const end = performance.now() + fillMs; (await running()) < enough; await sleep(500)) {
      if (performance.now() > end) throw new Error(`only ${await running()} tasks are in flight`);
    }
    let rssBytes = 0;
    for (
      const end = performance.now() + flight.watchMs;
      performance.now() < end;
      await sleep(500)
    ) {
      rssBytes = Math.max(rssBytes, (await gateway.ask<ProcessFigures>("figures")).rssBytes);
    }
    return { tasks: await running(), rssBytes };
  } finally {
    await pool.end();
  }
}
