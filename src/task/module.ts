/** Connects the parts of a server's task room: the whole service, and the worker. */
import type { Logger } from "pino";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import { TaskService } from "../../gen/uas/task/v1/task_service_pb.ts";
import type { CallRow } from "../billing/calls/call-row.ts";
import { createPricing, type PriceBook } from "../billing/prices/pricing.ts";
import { callCost } from "../billing/prices/cost.ts";
import type { Config, Settings } from "../config/config.ts";
import type { LiveConfig } from "../config/live-config.ts";
import { priceAt } from "../config/price.ts";
import type { Clock } from "../core/clock.ts";
import { refill } from "../core/derived.ts";
import { countVendorLoss, type Metrics } from "../observe/metrics.ts";
import type { Traces } from "../observe/traces/traces.ts";
import { formatUsd, nanosPerUsd } from "../core/money.ts";
import { serve, type Service } from "../core/contract-rules.ts";
import type { Database } from "../db/database.ts";
import { openPool } from "../db/pool/open-pool.ts";
import { backgroundOf } from "../responses/background/request.ts";
import { createBackgroundRunner } from "../responses/background/runner.ts";
import type { BackgroundTasks } from "../responses/background/tasks.ts";
import type { Admission } from "../calls/admission.ts";
import { reportImplausible } from "../calls/pipeline/plausible.ts";
import type { MediaTasks } from "../calls/adapters/media/media-tasks.ts";
import type { CallState } from "../responses/stored/responses-memory.ts";
import type { BackgroundStore } from "../responses/background/store.ts";
import type { EventLog } from "../responses/background/event-log.ts";
import { createTextRunner } from "../calls/adapters/text-task.ts";
import type { Upstream } from "../routing/upstream.ts";
import type { ResultFiles } from "../result/result.ts";
import type { Vendor } from "../provider/vendor.ts";
import { createBackgroundTasks } from "./work/background.ts";
import { createMediaTasks } from "./work/media-tasks.ts";
import { vendorKey } from "./work/claim.ts";
import { taskDurationMs } from "./work/charge.ts";
import { traceTask } from "./work/task-trace.ts";
import { type Callbacks, createCallbacks } from "./work/vendor-notifications.ts";
import { createCancel } from "./work/cancel.ts";
import { TaskFeed } from "./read/feed.ts";
import { createTaskJobs } from "./jobs.ts";
import { WaitSlots } from "./read/reads.ts";
import { createTaskSchemas, type TaskSchemas } from "./schema/schemas.ts";
import { createTaskService } from "./service.ts";
import { createTaskStore } from "./store.ts";
import { createSubmit, openSubmitPool } from "./submit/submit.ts";
import { traceSubmits } from "./submit/submit-trace.ts";
import type { TaskRow } from "./task-row.ts";
import type {
  WorkerOptions,
  ResultStore,
  WorkerText,
  WorkerTimings,
  WorkerVendor,
} from "./work/worker-options.ts";
import { createTaskWorker } from "./work/worker.ts";

/** Dependencies of {@link createTaskRoom}. */
interface TaskOptions {
  readonly clock: Clock;
  readonly database: Database;
  readonly config: Config;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly prices: PriceBook;
  /** Decides which models a caller may use. */
  readonly admission: Pick<Admission, "model">;
  readonly metrics: Metrics;
  /** Default: tasks are not traced. */
  readonly traces?: Traces | undefined;
  /** Finds result files. */
  readonly results: Pick<ResultFiles, "find">;
  /** Called when a task is due. Does nothing by default; workers find it with their next scan. */
  readonly onNews?: () => void;
  /**
   * Called when the cancel of a running task is requested. Does nothing by default; its worker
   * finds it at its heartbeat.
   */
  readonly onCancel?: (taskId: string) => void;
  /** Tasks that were submitted to a vendor's native API. None by default. */
  readonly native?: Pick<WorkerOptions, "natives" | "notify">;
}

/** The task room of a server. */
export interface TaskRoom {
  readonly service: Service;
  /** Receives vendors' callbacks about tasks. */
  readonly callbacks: Callbacks;
  /** Runs responses in the background. */
  readonly background: BackgroundTasks;
  /** Runs requests for images as tasks. */
  readonly media: MediaTasks;
  start(): Promise<void>;
  /** Answers waiting polls, and closes the room's connections. */
  stop(): Promise<void>;
}

function schemasOf(vendors: TaskOptions["vendors"], allowHosts: readonly string[]): TaskSchemas {
  return createTaskSchemas({
    tasksOf: ({ vendor }) => vendors.get(vendor)?.tasks,
    takesText: ({ vendor }) => vendors.get(vendor)?.dialects.size !== 0,
    allowHosts,
  });
}

/** Creates the task room. */
export function createTaskRoom(options: TaskOptions): TaskRoom {
  const { database, clock, config, vendors, prices, metrics, onNews, onCancel } = options;
  const { taskPool: pool, url } = database;
  const { allowHosts } = config.webhooks;
  const store = createTaskStore(pool);
  const submits = openSubmitPool(url);
  const feed = new TaskFeed({ url });
  const waitSlots = new WaitSlots();
  const tasksOf = (vendor: string) => vendors.get(vendor)?.tasks;
  const canStop = ({ type, vendor, path }: TaskRow): boolean => {
    if (path !== null) return options.native?.natives?.get(vendor)?.tasks.canCancel ?? false;
    return type === ModelType.TEXT || (tasksOf(vendor)?.canCancel ?? false);
  };
  const notify = options.native?.notify;
  const onCancelRequested = ({ id }: Pick<TaskRow, "id">): void => {
    onCancel?.(id);
    onNews?.();
  };
  const cancel = createCancel({
    pool,
    store,
    canStop,
    onCancelRequested,
    ...(notify && { notify }),
  });
  const untraced = createSubmit({
    pool: submits,
    clock,
    pricing: createPricing(prices, clock),
    onAccepted: onNews,
    // If that fails too, the task runs: its client sees it in its list.
    onUnknown: ({ id, account_id }) => void cancel(id, account_id).catch(() => {}),
  });
  const submit = traceSubmits(untraced, options.traces);
  const schemas = schemasOf(vendors, allowHosts);
  const { results } = options;
  const service = createTaskService({
    store,
    feed,
    waitSlots,
    clock,
    allowHosts,
    authorize: (caller, modelKey) => options.admission.model(caller, modelKey),
    schemas,
    submit,
    cancel,
  });
  watchPolls(metrics, waitSlots);
  return {
    service: serve(TaskService, service),
    callbacks: createCallbacks({ pool, tasksOf, onNews }),
    background: createBackgroundTasks({ submit, cancel, store, feed, waitSlots }),
    media: createMediaTasks({ tasksOf, schemas, submit, cancel, store, feed, results }),
    start: () => feed.start(),
    async stop() {
      await Promise.all([feed.close(), submits.end()]);
    },
  };
}

function watchPolls(metrics: Metrics, waitSlots: WaitSlots): void {
  metrics.gauge("uas_task_polls_waiting", () => waitSlots.count);
}

/** Dependencies of {@link createTaskProcessing}. */
export interface TaskProcessingOptions {
  readonly clock: Clock;
  readonly database: Database;
  readonly config: LiveConfig;
  readonly settings: Pick<Settings, "publicUrl" | "workers">;
  /** Tasks that were submitted to a vendor's native API. */
  readonly native: Pick<WorkerOptions, "natives" | "notify">;
  /** By name. */
  readonly vendors: ReadonlyMap<string, Vendor>;
  /** Calls text vendors. */
  readonly upstream: Upstream;
  /** The state between calls. */
  readonly state: CallState;
  /** Background responses until they are complete. */
  readonly backgroundStore: BackgroundStore;
  /** The events of streamed background responses. */
  readonly backgroundEvents: EventLog;
  readonly results: ResultStore;
  readonly prices: PriceBook;
  readonly metrics: Metrics;
  /** Default: tasks are not traced. */
  readonly traces?: Traces | undefined;
  readonly log: Logger;
  /** Called if the end of a task reduces an account below its threshold. */
  readonly onLowBalance: (accountId: string, balanceNanos: bigint) => void;
  /** Called when a task has cost more than its account could pay. */
  readonly onLoss: (accountId: string, lossNanos: bigint) => void;
  /** For tests. The values of limits.ts by default. */
  readonly taskTimings?: Partial<WorkerTimings> | undefined;
}

/** The worker and the jobs of a server. */
export interface TaskProcessing {
  start(): void;
  /** Claims tasks now: there is a new one. Cheap, never fails. */
  readonly wake: () => void;
  /** Cancels a task that this process works on: {@link TaskWorker.cancel}. */
  readonly cancel: (taskId: string) => void;
  /**
   * Hands tasks over. A submit that waits for its vendor may be answered for `graceMs`
   * milliseconds.
   */
  stop(graceMs: number): Promise<void>;
}

/** The connections of the worker: its bursts must not delay callers. */
const poolMax = 6;

/** Creates the worker and the jobs; {@link TaskProcessing.start} begins. */
export function createTaskProcessing(options: TaskProcessingOptions): TaskProcessing {
  const { database, metrics, log, prices, results, config, onLowBalance, onLoss } = options;
  const pool = openPool(database.url, { max: poolMax, for: "jobs" });
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const jobs = createTaskJobs({
    pool,
    warn,
    onCount: (counts, queueAgeSeconds) => {
      for (const [state, count] of counts) metrics.tasks.set({ state }, count);
      metrics.taskQueueAge.set(queueAgeSeconds);
    },
  });
  const vendors = new Map(workerVendors(options));
  const texts = new Map(textVendors(options));
  config.onExchange(() => {
    refill(vendors, workerVendors(options));
    refill(texts, textVendors(options));
  });
  const worker = createTaskWorker({
    pool,
    results,
    warn,
    onLowBalance,
    onLoss,
    config,
    vendors,
    routing: options.upstream.jobs,
    ...pickNative(options.native),
    text: { ...textRunner(options), vendors: texts },
    findPrice: (version) => prices.find(version),
    vendorCost: vendorCostOf(config),
    timings: options.taskTimings ?? {},
    ...callbackAt(options.settings),
    onSubmit: (vendor, outcome) => metrics.taskSubmits.inc({ vendor, outcome }),
    ...reports(options),
  });
  metrics.gauge("uas_tasks_under_way", worker.underWay);
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
  notify,
}: TaskProcessingOptions["native"]): Pick<WorkerOptions, "natives" | "notify"> {
  return { ...(natives && { natives }), ...(notify && { notify }) };
}

/** Runs TEXT tasks and background responses. */
function textRunner({
  upstream,
  clock,
  state,
  backgroundStore: store,
  backgroundEvents: events,
  log,
}: Pick<
  TaskProcessingOptions,
  "upstream" | "clock" | "state" | "backgroundStore" | "backgroundEvents" | "log"
>): Omit<WorkerText, "vendors"> {
  const text = createTextRunner(upstream, clock);
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const response = createBackgroundRunner({ upstream, clock, state, store, log: events, warn });
  return { run: (ask) => (backgroundOf(ask.params) === undefined ? text : response)(ask) };
}

function workerVendors({
  vendors,
  upstream,
  config,
  settings: { workers },
}: Pick<TaskProcessingOptions, "vendors" | "upstream" | "config" | "settings">): ReadonlyMap<
  string,
  WorkerVendor
> {
  return new Map(
    [...vendors].flatMap(([name, { tasks }]) => {
      if (tasks === undefined) return [];
      const set = config.vendors.get(name);
      const { maxInFlight, baseUrl = "" } = set ?? {};
      const allPolls = set?.pollsPerSecond ?? tasks.pollsPerSecond;
      // Each worker process polls its share: each of them may have any task.
      const pollsPerSecond = allPolls && Math.max(1, Math.floor(allPolls / workers));
      const common = { maxInFlight, pollsPerSecond, baseUrl };
      const { credentials = [] } = upstream.targets.vendor(name) ?? {};
      const each = credentials.map(
        ({ credential, client }) =>
          [vendorKey(name, credential), { ...common, tasks: client.tasks ?? tasks }] as const,
      );
      return [[name, { ...common, tasks }] as const, ...each];
    }),
  );
}

function textVendors({
  vendors,
  config,
}: Pick<TaskProcessingOptions, "vendors" | "config">): WorkerText["vendors"] {
  const names = [...vendors.values()].filter(({ dialects }) => dialects.size > 0);
  return new Map(
    names.map(({ name }) => [name, { maxInFlight: config.vendors.get(name)?.maxInFlight }]),
  );
}

function vendorCostOf(config: Pick<Config, "models">): NonNullable<WorkerOptions["vendorCost"]> {
  return ({ model, vendor, vendor_model: name, create_time: time }, usage) => {
    const routes = config.models.get(model)?.routes ?? [];
    const costs = routes.find((each) => each.vendor === vendor && each.model === name)?.costs;
    return costs && callCost(priceAt(costs, time.getTime()), usage);
  };
}

/** The callback address for vendors, if the public URL has TLS: vendors accept nothing else. */
function callbackAt({
  publicUrl,
}: Pick<Settings, "publicUrl">): Pick<WorkerOptions, "callbackUrl"> {
  if (!publicUrl?.startsWith("https:")) return {};
  return { callbackUrl: (token) => `${publicUrl}/callbacks/${token}` };
}

/** The shown length of a vendor's failure, in characters. */
const shownChars = 200;

/** Reports tasks to the operator: in the log, in metrics, and on the vendors page. */
function reports({
  metrics,
  traces,
  log,
  upstream,
}: Pick<TaskProcessingOptions, "metrics" | "traces" | "log" | "upstream">): Required<
  Pick<WorkerOptions, "onAlarm" | "onSilent" | "onEnd" | "onImplausible" | "onLateCost">
> {
  return {
    onSilent(vendor, error) {
      const what = error instanceof Error ? error.message : String(error);
      upstream.reportFailure(vendor, `tasks: ${what}`.slice(0, shownChars).toWellFormed());
    },
    onAlarm({ vendor, model, fault, isNew }) {
      metrics.upstreamAlarms.inc({ vendor, reason: fault });
      if (!isNew) return;
      log.error(
        { vendor, model, alarm: fault },
        "a vendor refuses the operator's account: check its credential, balance and model name",
      );
    },
    onEnd(task, record) {
      // End states are the documented status words.
      metrics.tasksEnded.inc({ status: task.state, error_code: task.error_code ?? "" });
      countMoney(metrics, task, record);
      traceTask(traces, task);
      log.info(endFields(task, record), "task");
    },
    onImplausible({ id: taskId, vendor, vendor_model: model }, { usage, lossNanos }) {
      reportImplausible({ metrics, log }, { id: { taskId }, vendor, model, usage, lossNanos });
    },
    onLateCost({ id: taskId, model, vendor }, vendorCostNanos) {
      metrics.vendorCost.inc({ model, vendor }, Number(vendorCostNanos) / Number(nanosPerUsd));
      metrics.platformLoss.inc({ reason: "late_charge" }, Number(vendorCostNanos));
      const vendorCost = formatUsd(vendorCostNanos);
      log.warn({ taskId, model, vendor, vendorCost }, "a vendor charged for a task that had ended");
    },
  };
}

function countMoney(metrics: Metrics, { model, vendor }: TaskRow, record?: CallRow): void {
  const usdOf = (nanos: string | null | undefined): number =>
    Number(nanos ?? 0) / Number(nanosPerUsd);
  const cost = usdOf(record?.cost);
  const vendorCost = usdOf(record?.vendor_cost);
  if (cost > 0) metrics.charged.inc({ model }, cost);
  if (vendorCost > 0) {
    metrics.vendorCost.inc({ model, vendor }, vendorCost);
    countVendorLoss(metrics, BigInt(record?.cost ?? 0), BigInt(record?.vendor_cost ?? 0));
  }
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
    durationMs: taskDurationMs(task),
  };
}
