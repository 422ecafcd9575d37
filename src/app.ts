/**
 * The wiring: with backend.ts and edges.ts the only place that knows every room. Here a server is put
 * together: the money's hot door, keys, vendors, background jobs; and taken apart in the right order.
 */
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Backend, type OpenOptions, openBackend, silent } from "./app/backend.ts";
import { type BillingJobs, billingPartitions, createBillingJobs } from "./billing/jobs.ts";
import type { OnLowBalance } from "./billing/ledger/booking.ts";
import type { WorkerName } from "./core/worker-name.ts";
import type { LedgerTimings } from "./billing/ledger/ledger.ts";
import { createLedger, type LedgerWriter } from "./billing/ledger/ledger-writer.ts";
import type { At } from "./billing/ledger/failpoints.ts";
import { createPriceBook } from "./billing/prices/price-book.ts";
import type { Config, VendorConfig } from "./config/config.ts";
import { drainMs } from "./config/limits.ts";
import { ensurePartitions } from "./db/partition.ts";
import { directHandlers, createEdges, type EdgeOptions, type Edges } from "./app/edges.ts";
import { DetachedReplies } from "./inference/pipeline/disconnect.ts";
import { createPricing, createInference } from "./inference/module.ts";
import { RunningCalls } from "./inference/running-calls.ts";
import { createTokenCounter } from "./inference/tokens/counter.ts";
import { createInferenceState } from "./inference/state/state.ts";
import { createUnlimitedRoutes } from "./inference/unlimited-routes.ts";
import { createUpstream } from "./inference/upstream.ts";
import { createAuthenticator } from "./key/authenticate.ts";
import { createMetrics, type Metrics } from "./core/metrics.ts";
import { formatUsd } from "./core/money.ts";
import { createNativeRoom, type NativeRoom, type NativeRoomOptions } from "./native/module.ts";
import { createOperatorRoom } from "./operator/module.ts";
import { createReadiness, watchCalls } from "./app/gauges.ts";
import { openResults } from "./result/module.ts";
import { fileSeconds } from "./vendor/media-length.ts";
import { createSignInObserver, type SignIn } from "./account/module.ts";
import {
  createTaskWorking,
  createTaskRoom,
  type TaskWorking,
  type WorkingOptions,
  type TaskRoom,
} from "./task/module.ts";
import { vendorKinds } from "./vendor/index.ts";
import type { Vendor } from "./vendor/vendor.ts";
import { WarmUp } from "./app/warm-up.ts";
import { createWebhookSending } from "./webhook/module.ts";

export { openBackend };

/** How long calls may take to be settled that were stopped, in milliseconds. */
const drainEndMs = 5_000;

/** A gateway that is built. */
export interface App {
  /** Reaches accounts, keys and billing in this process, as the operator. */
  readonly transport: Transport;
  readonly metrics: Metrics;
  readonly signIn: SignIn;
  /** Begins to serve. @throws where a port is taken, naming it */
  listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }>;
  /**
   * Stops: no new calls, running ones may finish for `drainMs` (default: see limits), then they are
   * ended; every hold is settled; everything that was opened is closed. Safe to call twice.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** What building needs. `pages`: of the console; default: none. For tests: `timings`, how long the ledger's things take;
 * default: see {@link LedgerTimings}; `taskTimings`, the same for tasks; `at`, told of each point that an operation on money passes; default: nobody. */
export interface BuildOptions extends OpenOptions, Pick<EdgeOptions, "pages" | "readMetrics"> {
  /** Which of several workers this process is. Default: it is alone. */
  readonly worker?: WorkerName | undefined;
  readonly timings?: Partial<LedgerTimings>;
  readonly taskTimings?: WorkingOptions["taskTimings"] & NativeRoomOptions["taskTimings"];
  readonly at?: At;
}

/** Builds a gateway; it does not listen yet. */
export async function buildApp(options: BuildOptions): Promise<App> {
  const { log = silent() } = options;
  const metrics = createMetrics();
  const onLowBalance: OnLowBalance = (accountId, balanceNanos) => {
    metrics.lowBalances.inc();
    const balance = formatUsd(balanceNanos);
    log.warn({ accountId, balance }, "an account has fallen below its low-balance threshold");
  };
  const told = { onLowBalance, signInObserver: createSignInObserver(metrics) };
  const backend = await openBackend({ ...options, ...told });
  try {
    return await assemble({ ...options, log, metrics, onLowBalance, backend });
  } catch (error) {
    await backend.close();
    throw error;
  }
}

interface Parts extends BuildOptions {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly onLowBalance: OnLowBalance;
  readonly backend: Backend;
}

async function assemble(built: Parts): Promise<App> {
  const { settings, config, log, metrics, backend, onLowBalance, pages, readMetrics } = built;
  const { database, signIn } = backend;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const [calls, detached] = [createRunningCalls(built), new DetachedReplies()];
  const prices = createPriceBook({ pool: database.pool });
  await prices.load(config.models.values());
  const { ledger, jobs } = createMoney(built);
  const { pool, url } = database;
  const onRefused = (reason: string): void => metrics.authFailures.inc({ reason });
  const authenticator = createAuthenticator({ pool, url, warn, onRefused });
  const vendors = createVendors(config);
  const upstream = openUpstream(built, vendors);
  watchCalls({ metrics, calls, detached, ledger, jobs });
  const masterKey = backend.masterKey();
  const state = createInferenceState({ pool: database.pool, masterKey, vendors, metrics, log });
  const counter = createTokenCounter({ warn });
  const pricing = createPricing(prices);
  const parts = { config, vendors, ledger, pricing, calls, detached, metrics, log, state, counter };
  const unlimitedRoutes = createUnlimitedRoutes({ pool, url, metrics, log });
  const results = openResults({ pool, settings, config, warn, measure: fileSeconds });
  const work = { database, config, vendors, prices, metrics, upstream, state };
  const common = { ...work, settings, log, onLowBalance, masterKey, results };
  const { native, working, tasks } = createTaskRooms(common);
  const inference = createInference({
    ...parts,
    ...{ upstream, unlimitedRoutes, background: tasks.background },
  });
  const natives = native.serve({ ...parts, ...inference });
  const own = [...inference.services, tasks.service, natives.service, createOperatorRoom(work)];
  const sending = createWebhookSending({ backend, config, metrics, log });
  const warm = new WarmUp({ ...parts, models: config.models.values() }, settings.isWarmedUp);
  const edges = await createEdges({
    ...{ settings, log, metrics, calls, results, tasks, native, signIn, pages, readMetrics },
    services: [...backend.services, ...own].flat(),
    authenticate: authenticator.authenticate,
    onRefusedKey: inference.refusedKeys.take,
    isReady: createReadiness(pool, calls, () => warm.isDone),
    direct: directHandlers(inference.handlers, natives.handlers),
  });
  await authenticator.start();
  await makePartitions(database.pool, warn);
  const roomJobs = [jobs, state.jobs, signIn.jobs, native.jobs];
  const starting = [...roomJobs, unlimitedRoutes, results.jobs, sending, tasks, working];
  for (const each of starting) await each.start();
  const stopping = [
    ...roomJobs,
    unlimitedRoutes,
    sending,
    results,
    tasks,
    inference.refusedKeys,
    warm,
  ];
  const open = [counter, authenticator, ...vendors.values()];
  const closing = { calls, detached, edges, working, stopping, ledger, open, backend };
  let closed: Promise<void> | undefined;
  return {
    transport: backend.transport,
    metrics,
    signIn,
    listen: async () => {
      const urls = await edges.listen();
      warm.start();
      return native.servedAt(results.servedAt(urls));
    },
    close: ({ drainMs: limitMs = drainMs } = {}) => (closed ??= closeAll(closing, limitMs)),
  };
}

interface Closing extends Ending {
  readonly working: TaskWorking;
  readonly stopping: readonly { stop(): Promise<void> }[];
  readonly ledger: LedgerWriter;
  readonly open: readonly { close(): Promise<void> }[];
  readonly backend: Backend;
}

/** Takes a server apart: calls first, then what works by itself, then the books, then what all of them use. */
async function closeAll(closing: Closing, limitMs: number): Promise<void> {
  const { working, stopping, ledger, open, backend } = closing;
  await Promise.all([endCalls(closing, limitMs), working.stop(limitMs)]);
  await stopAll(stopping);
  await ledger.close();
  await Promise.all(open.map((each) => each.close()));
  await backend.close();
}

async function stopAll(parts: readonly { stop(): Promise<void> }[]): Promise<void> {
  await Promise.all(parts.map((part) => part.stop()));
}

/** Tasks, in our own form and in vendors': who accepts them and who works on them need each other. */
function createTaskRooms(parts: Omit<NativeRoomOptions & WorkingOptions, "onNews" | "native">): {
  readonly native: NativeRoom;
  readonly working: TaskWorking;
  readonly tasks: TaskRoom;
} {
  const onNews = (): void => working.wake();
  const native = createNativeRoom({ ...parts, onNews });
  const working = createTaskWorking({ ...parts, native });
  const tasks = createTaskRoom({ ...parts, onNews, onCancel: working.cancel, native });
  return { native, working, tasks };
}

interface Ending {
  readonly calls: RunningCalls;
  readonly detached: DetachedReplies;
  readonly edges: Edges;
}

/** Lets running calls end by themselves, at most for `limitMs`; then ends them. */
async function endCalls({ calls, detached, edges }: Ending, limitMs: number): Promise<void> {
  await calls.drain(limitMs);
  detached.stop();
  await edges.close();
  // Replies that nobody reads have no connection that was waited for.
  await calls.drain(drainEndMs);
}

/** The count of running calls, and what is told of those that are refused. */
function createRunningCalls({ settings, metrics }: Parts): RunningCalls {
  return new RunningCalls(settings.maxConcurrentCalls, () =>
    metrics.limitRefusals.inc({ limit: "concurrent_calls" }),
  );
}

/** The hot door to the money, and what billing does by itself. */
function createMoney({ settings, log, onLowBalance, backend, timings, at, worker }: Parts): {
  ledger: LedgerWriter;
  jobs: BillingJobs;
} {
  const common = {
    ...timings,
    ...(at && { at }),
    warn: (message: string, fields: object): void => log.warn(fields, message),
    alarm: (message: string, fields: object): void => log.error(fields, message),
    onLowBalance,
  };
  const { database } = backend;
  const journal = { folder: join(settings.dataDir, "journal"), worker };
  const ledger = createLedger({ ...common, url: database.url, journal });
  const { nodeId } = ledger;
  return { ledger, jobs: createBillingJobs({ ...common, pool: database.pool, nodeId }) };
}

/**
 * Before the first call: PostgreSQL refuses a row that is on its way into the default partition while the
 * month's own is made, and the record of a call would be lost.
 */
async function makePartitions(
  pool: Backend["database"]["pool"],
  warn: (message: string, fields: object) => void,
): Promise<void> {
  await ensurePartitions(pool, billingPartitions).catch((error: unknown) =>
    warn("making partitions failed: tried again in the background", { error }),
  );
}

/** Of the calls in flight that a vendor may have, each of several workers has its share, rounded up. */
function openUpstream(
  { settings: { workers }, config, metrics, log }: Parts,
  vendors: ReadonlyMap<string, Vendor>,
): ReturnType<typeof createUpstream> {
  const share = ([name, vendor]: [string, VendorConfig]): [string, VendorConfig] => {
    const { maxInFlight } = vendor;
    return [name, { ...vendor, maxInFlight: maxInFlight && Math.ceil(maxInFlight / workers) }];
  };
  const configs = new Map([...config.vendors].map(share));
  return createUpstream({ vendors, configs, metrics, log });
}

function createVendors(config: Config): Map<string, Vendor> {
  const used = new Set(
    [...config.models.values()].flatMap((model) => model.routes.map((route) => route.vendor)),
  );
  const vendors = new Map<string, Vendor>();
  for (const [name, vendor] of config.vendors) {
    const kind = used.has(name) ? vendorKinds[vendor.kind] : undefined;
    if (kind !== undefined) vendors.set(name, kind.create(vendor));
  }
  return vendors;
}
