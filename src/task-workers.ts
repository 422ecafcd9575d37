/** Puts the work on tasks together, for a server. */
import type { Logger } from "pino";
import type { CallRow } from "./billing/call-row.ts";
import { callCost } from "./billing/price.ts";
import type { PriceBook } from "./billing/price-book.ts";
import type { Config, Settings } from "./config/config.ts";
import { priceAt } from "./config/price.ts";
import type { Database } from "./db/database.ts";
import { openPool } from "./db/open-pool.ts";
import { backgroundOf } from "./inference/background/params.ts";
import { createBackgroundRunner } from "./inference/background/run.ts";
import type { InferenceState } from "./inference/state/state.ts";
import { createTextRunner } from "./inference/text-task.ts";
import type { Upstream } from "./inference/upstream.ts";
import type { Metrics } from "./metrics.ts";
import { formatUsd, nanosPerUsd } from "./money.ts";
import { createTaskJobs } from "./task/jobs.ts";
import type { TaskRow } from "./task/task-row.ts";
import { createTaskWorker } from "./task/worker.ts";
import type {
  ResultStore,
  WorkerOptions,
  WorkerText,
  WorkerTimings,
  WorkerVendor,
} from "./task/worker-options.ts";
import type { Vendor } from "./vendor/vendor.ts";

/** What a server works on tasks with. */
export interface WorkingOptions {
  readonly database: Database;
  readonly config: Pick<Config, "models" | "vendors">;
  readonly settings: Pick<Settings, "publicUrl" | "workers">;
  /** Tasks that were submitted in their vendor's own form. */
  readonly native: Pick<WorkerOptions, "natives" | "tell">;
  /** By name. */
  readonly vendors: ReadonlyMap<string, Vendor>;
  /** Who asks vendors for texts. */
  readonly upstream: Upstream;
  /** What inference keeps between calls. */
  readonly state: InferenceState;
  readonly results: ResultStore;
  readonly prices: PriceBook;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Told when the end of a task takes an account below its threshold. */
  readonly onLowBalance: (accountId: string, balanceNanos: bigint) => void;
  /** For tests. Default: those of the limits. */
  readonly taskTimings?: Partial<WorkerTimings>;
}

/** The work of a server on tasks. */
export interface TaskWorking {
  start(): void;
  /** There is a new task: it is looked for now. Cheap, never fails. */
  readonly wake: () => void;
  /** A task is to end: see {@link TaskWorker.cancel}. */
  readonly cancel: (taskId: string) => void;
  /** Hands over; a vendor that is being asked for a task may answer for `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** How many connections the work may open: bursts of it must not hold up what callers wait for. */
const poolMax = 6;

/** Makes it; it does not work yet. */
export function createTaskWorking(options: WorkingOptions): TaskWorking {
  const { database, metrics, log, prices, results, config, onLowBalance } = options;
  const pool = openPool(database.url, { max: poolMax, for: "jobs" });
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const jobs = createTaskJobs({
    pool,
    warn,
    onCount: (counts) => {
      for (const [state, count] of counts) metrics.tasks.set({ state }, count);
    },
  });
  const worker = createTaskWorker({
    pool,
    results,
    warn,
    onLowBalance,
    models: config.models,
    vendors: workerVendors(options),
    ...pickNative(options.native),
    text: { run: textRunner(options), vendors: textVendors(options) },
    findPrice: (version) => prices.find(version),
    vendorCost: vendorCostOf(config),
    timings: options.taskTimings ?? {},
    ...callbackAt(options.settings),
    onSubmit: (vendor, outcome) => metrics.taskSubmits.inc({ vendor, outcome }),
    ...reports(options),
  });
  metrics.gauge(
    "uas_tasks_under_way",
    "Tasks that this process works on at this moment; those that wait for their vendors are not among them.",
    worker.underWay,
  );
  return {
    wake: () => worker.wake(),
    cancel: (taskId) => worker.cancel(taskId),
    start() {
      worker.start();
      jobs.start();
    },
    async stop(graceMs) {
      await Promise.all([worker.stop({ graceMs }), jobs.stop()]);
      await pool.end();
    },
  };
}

function pickNative({
  natives,
  tell,
}: WorkingOptions["native"]): Pick<WorkerOptions, "natives" | "tell"> {
  return { ...(natives && { natives }), ...(tell && { tell }) };
}

/** Texts of tasks, and responses in the background. */
function textRunner({
  upstream,
  state,
  log,
}: Pick<WorkingOptions, "upstream" | "state" | "log">): WorkerText["run"] {
  const text = createTextRunner(upstream);
  const { background: store, events } = state;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const response = createBackgroundRunner({ upstream, state, store, log: events, warn });
  return (ask) => (backgroundOf(ask.params) === undefined ? text : response)(ask);
}

function workerVendors({
  vendors,
  config,
  settings: { workers },
}: Pick<WorkingOptions, "vendors" | "config" | "settings">): ReadonlyMap<string, WorkerVendor> {
  return new Map(
    [...vendors].flatMap(([name, { tasks }]) => {
      if (tasks === undefined) return [];
      const set = config.vendors.get(name);
      const { maxInFlight, baseUrl = "" } = set ?? {};
      const allPolls = set?.pollsPerSecond ?? tasks.pollsPerSecond;
      // Each worker asks its share: any of them may have any task.
      const pollsPerSecond = allPolls && Math.max(1, Math.floor(allPolls / workers));
      return [[name, { tasks, maxInFlight, pollsPerSecond, baseUrl }] as const];
    }),
  );
}

function textVendors({
  vendors,
  config,
}: Pick<WorkingOptions, "vendors" | "config">): WorkerText["vendors"] {
  const names = [...vendors.values()].filter(({ dialects }) => dialects.size > 0);
  return new Map(
    names.map(({ name }) => [name, { maxInFlight: config.vendors.get(name)?.maxInFlight }]),
  );
}

function vendorCostOf({
  models,
}: Pick<Config, "models">): NonNullable<WorkerOptions["vendorCost"]> {
  return ({ model, vendor, vendor_model: name, create_time: time }, usage) => {
    const routes = models.get(model)?.routes ?? [];
    const costs = routes.find((each) => each.vendor === vendor && each.model === name)?.costs;
    return costs && callCost(priceAt(costs, time.getTime()), usage);
  };
}

/** Where vendors may call back: at an address of the public internet that is known, with TLS, as they want it. */
function callbackAt({
  publicUrl,
}: Pick<Settings, "publicUrl">): Pick<WorkerOptions, "callbackUrl"> {
  if (!publicUrl?.startsWith("https:")) return {};
  return { callbackUrl: (token) => `${publicUrl}/callbacks/${token}` };
}

/** How much of a vendor's failure is shown, in characters. */
const shownChars = 200;

/** What an operator is told of tasks, in log and metrics, and where vendors are shown. */
function reports({
  metrics,
  log,
  upstream,
}: Pick<WorkingOptions, "metrics" | "log" | "upstream">): Required<
  Pick<WorkerOptions, "onAlarm" | "onSilent" | "onEnd" | "onLateCost">
> {
  return {
    onSilent(vendor, error) {
      const what = error instanceof Error ? error.message : String(error);
      upstream.noteFailure(vendor, `tasks: ${what}`.slice(0, shownChars).toWellFormed());
    },
    onAlarm({ vendor, model, fault, isNew }) {
      metrics.upstreamAlarms.inc({ vendor, reason: fault });
      upstream.noteFailure(vendor, `tasks: refuses the gateway's own ${fault}`);
      if (!isNew) return;
      log.error(
        { vendor, model, alarm: fault },
        "a vendor refuses the gateway itself: act on its account or route",
      );
    },
    onEnd(task, record) {
      // The words of ends are those of their states.
      metrics.tasksEnded.inc({ status: task.state, error_code: task.error_code ?? "" });
      countMoney(metrics, task, record);
      log.info(endFields(task, record), "task");
    },
    onLateCost({ id: taskId, model, vendor }, vendorCostNanos) {
      metrics.vendorCost.inc({ model, vendor }, Number(vendorCostNanos) / Number(nanosPerUsd));
      const vendorCost = formatUsd(vendorCostNanos);
      log.warn({ taskId, model, vendor, vendorCost }, "a vendor charged for a task that had ended");
    },
  };
}

function countMoney(metrics: Metrics, { model, vendor }: TaskRow, record?: CallRow): void {
  const usdOf = (nanos: string | null | undefined): number =>
    Number(nanos ?? 0) / Number(nanosPerUsd);
  const [cost, vendorCost] = [usdOf(record?.cost), usdOf(record?.vendor_cost)];
  if (cost > 0) metrics.charged.inc({ model }, cost);
  if (vendorCost > 0) metrics.vendorCost.inc({ model, vendor }, vendorCost);
}

function endFields(task: TaskRow, record?: CallRow): Readonly<Record<string, unknown>> {
  const { vendor_cost: vendorCost } = record ?? {};
  return {
    requestId: task.request_id,
    taskId: task.id,
    accountId: task.account_id,
    keyId: task.key_id,
    model: task.model,
    vendor: task.vendor,
    status: task.state,
    errorCode: task.error_code ?? undefined,
    cost: formatUsd(BigInt(task.cost ?? 0)),
    vendorCost: vendorCost ? formatUsd(BigInt(vendorCost)) : undefined,
    durationMs: record?.duration_ms,
  };
}
