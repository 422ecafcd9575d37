/**
 * The wiring: with backend.ts and edges.ts the only code that knows every room. It builds a server (ledger, keys,
 * vendors, background jobs) and closes it in the right order.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Transport } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Backend, type OpenOptions, openBackend, silent } from "./app/backend.ts";
import { createAlertSending } from "./alert/module.ts";
import { openLedger, prepareLedger } from "./billing/module.ts";
import type { OnLowBalance } from "./billing/ledger/booking.ts";
import type { LedgerTimings } from "./billing/ledger/ledger.ts";
import type { LedgerWriter } from "./billing/ledger/ledger-writer.ts";
import type { Failpoint } from "./billing/ledger/failpoints.ts";
import { createPricing, createPriceBook } from "./billing/prices/pricing.ts";
import { countDeadlineMs, drainMs } from "./config/limits.ts";
import { createEdges, directHandlers, type EdgeOptions, type Edges } from "./app/edges.ts";
import { DetachedReplies } from "./inference/pipeline/disconnect.ts";
import { createInference } from "./inference/module.ts";
import { openLimiter, type Limiter } from "./inference/limits/limiter.ts";
import { RunningCalls } from "./inference/running-calls.ts";
import { createTokenCounter } from "./inference/tokens/counter.ts";
import { createInferenceState } from "./inference/state/state.ts";
import { createAuthenticator } from "./key/authenticate.ts";
import { createKeyCheck } from "./key/usable.ts";
import { requireMasterKey } from "./key/master-key.ts";
import type { Clock } from "./core/clock.ts";
import { createMetrics, type Metrics } from "./core/metrics.ts";
import { formatUsd } from "./core/money.ts";
import { createNativeRoom, type NativeRoom, type NativeRoomOptions } from "./native/module.ts";
import { createOperatorRoom } from "./operator/module.ts";
import type { ResultFiles } from "./result/result.ts";
import { openResults } from "./result/module.ts";
import { fileSeconds } from "./vendor/media-length.ts";
import { createSignInObserver, type SignIn } from "./account/module.ts";
import {
  createTaskProcessing,
  createTaskRoom,
  type TaskProcessing,
  type TaskProcessingOptions,
  type TaskRoom,
} from "./task/module.ts";
import { createWebhookSending } from "./webhook/module.ts";
import type { Pool } from "pg";
import type { BillingJobs } from "./billing/jobs.ts";
import type { Config, Settings, VendorConfig } from "./config/config.ts";
import type { CorrectedClock } from "./db/corrected-clock.ts";
import type { Database } from "./db/database.ts";
import { AffinityShare } from "./inference/routing/affinity.ts";
import { HealthStore } from "./inference/routing/health-store.ts";
import { type OpenVendor, Targets } from "./inference/routing/targets.ts";
import { createUpstream, type Upstream } from "./inference/routing/upstream.ts";
import { vendorKinds } from "./vendor/index.ts";
import type { Vendor } from "./vendor/vendor.ts";

/** Time for stopped calls to be settled, in milliseconds. */
const drainEndMs = 5_000;

/** A complete gateway. */
export interface App {
  /** Calls accounts, keys and billing within this process, as the operator. */
  readonly transport: Transport;
  readonly metrics: Metrics;
  readonly signIn: SignIn;
  /** Starts listening. @throws where a port is in use; the error names it */
  listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }>;
  /**
   * Stops the gateway. Calls are still served for `delayMs`; then no more connections are taken. Running calls may
   * finish for `drainMs` and are then cancelled. Every hold is settled and every resource closed. Safe to call twice.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Options of {@link App.close}. */
export interface CloseOptions {
  /** How long everything is still served, while `/readyz` answers 503, in milliseconds. Default 0. */
  readonly delayMs?: number;
  /** Whether another process serves at the same address: then `/readyz` keeps its answer. Default false. */
  readonly isReplaced?: boolean;
  /** How long running calls may finish after that, in milliseconds. Default: see limits. */
  readonly drainMs?: number;
}

/**
 * Options of {@link buildApp}. `pages`: the console's pages; default: none. For tests: `timings` of the ledger
 * (default {@link LedgerTimings}), `taskTimings` of tasks, and `at`, a failpoint called at each step of a money
 * operation (default: none).
 */
export interface BuildOptions extends OpenOptions, Pick<EdgeOptions, "pages" | "readMetrics"> {
  readonly timings?: Partial<LedgerTimings>;
  readonly taskTimings?: TaskProcessingOptions["taskTimings"] & NativeRoomOptions["taskTimings"];
  readonly failpoint?: Failpoint;
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
  const observers = { onLowBalance, signInObserver: createSignInObserver(metrics) };
  const backend = await openBackend({ ...options, ...observers });
  watchClock(metrics, backend.clock);
  try {
    await requireMasterKey(backend.database.pool, backend.masterKey);
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

/** Counts that cost nothing have a thread of their own: holds and settlements never wait for them (R-LIM-2). */
function createCounters(warn: (message: string, fields: object) => void) {
  const freeCounter = createTokenCounter({ warn, deadlineMs: countDeadlineMs });
  return { counter: createTokenCounter({ warn }), freeCounter };
}

async function assemble(built: Parts): Promise<App> {
  const { settings, config, log, metrics, backend, onLowBalance, pages, readMetrics } = built;
  const { database, clock, signIn, anchor } = backend;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const [calls, detached] = [createRunningCalls(built), new DetachedReplies()];
  const [onLoss, prices] = [createLossReport(built), createPriceBook({ pool: database.pool })];
  await prices.load(config.models.values());
  const { ledger, jobs } = openLedger({ ...built, database, anchor, onLoss });
  const { pool, taskPool, jobPool, url } = database;
  const onRefused = (reason: string): void => metrics.authFailures.inc({ reason });
  const authenticator = createAuthenticator({ pool, url, warn, onRefused });
  const [counters, limiter] = [createCounters(warn), openLimiter(url, ledger.nodeId)];
  const opened = openVendors({ ...built, database, clock, limiter });
  const { vendors, storing, clients, upstream, sharing } = opened;
  watchCalls({ metrics, calls, detached, ledger, jobs });
  const [taskPools, masterKey] = [{ pool: taskPool, jobPool }, backend.masterKey()];
  const state = createInferenceState({ ...taskPools, masterKey, vendors: storing, metrics, log });
  const facts = { config, vendors, clock, metrics, log, state, ...counters };
  const parts = { ...facts, ledger, pricing: createPricing(prices, clock), calls, detached };
  const results = openResults({ ...taskPools, settings, config, warn, measure: fileSeconds });
  const work = { database, clock, config, vendors, prices, metrics, upstream, state };
  const { taskTimings = {} } = built;
  const common = { ...work, settings, log, onLowBalance, onLoss, masterKey, results, taskTimings };
  const isKeyUsable = createKeyCheck(pool);
  const { native, working, tasks } = createTaskRooms({ ...common, isKeyUsable });
  const inference = createInference({ ...parts, limiter, settings, database, upstream, tasks });
  const natives = native.serve({ ...parts, ...inference });
  const own = [...inference.services, tasks.service, natives.service, createOperatorRoom(work)];
  const sending = createWebhookSending({ backend, config, metrics, log });
  const alerts = createAlertSending({ database, config, metrics, log });
  const edges = await createEdges({
    ...{ settings, clock, log, metrics, calls, results, tasks, native, signIn, pages, readMetrics },
    services: [...backend.services, ...own].flat(),
    corsOrigins: config.cors?.origins,
    authenticate: authenticator.authenticate,
    onRefusedKey: inference.refusedKeys.record,
    whyNotReady: createReadiness({ pool, calls, ledger }),
    direct: directHandlers(inference.handlers, natives.handlers),
  });
  await authenticator.start();
  await prepareLedger(database, log);
  const roomJobs = [jobs, ...sharing, ...inference.jobs, state.jobs, signIn.jobs, native.jobs];
  const starting = [...roomJobs, results.jobs, sending, alerts, tasks, working];
  for (const each of starting) await each.start();
  const stopping = [...roomJobs, sending, alerts, results, tasks, inference.refusedKeys];
  const open = [...Object.values(counters), authenticator, limiter, ...clients];
  const closing = { log, calls, detached, edges, working, stopping, ledger, open, backend };
  let closed: Promise<void> | undefined;
  return {
    transport: backend.transport,
    metrics,
    signIn,
    listen: async () => {
      const urls = await edges.listen();
      return native.servedAt(results.servedAt(urls));
    },
    close: (options = {}) => (closed ??= closeAll(closing, options)),
  };
}

interface Closing extends Ending {
  readonly log: Logger;
  readonly working: TaskProcessing;
  readonly stopping: readonly { stop(): Promise<void> }[];
  readonly ledger: LedgerWriter;
  readonly open: readonly { close(): Promise<void> }[];
  readonly backend: Backend;
}

/** Closes a server: first calls, then background jobs, then the ledger, then shared resources. */
async function closeAll(
  closing: Closing,
  { delayMs = 0, isReplaced = false, drainMs: limitMs = drainMs }: CloseOptions,
): Promise<void> {
  const { log, edges, working, stopping, ledger, open, backend } = closing;
  edges.announceStop(isReplaced);
  if (delayMs > 0) await sleep(delayMs);
  log.info("draining");
  edges.stopListening();
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
function createTaskRooms(
  parts: Omit<NativeRoomOptions & TaskProcessingOptions, "onNews" | "native"> & {
    readonly results: ResultFiles;
  },
): {
  readonly native: NativeRoom;
  readonly working: TaskProcessing;
  readonly tasks: TaskRoom;
} {
  const onNews = (): void => working.wake();
  const native = createNativeRoom({ ...parts, onNews });
  const working = createTaskProcessing({ ...parts, native });
  const tasks = createTaskRoom({ ...parts, onNews, onCancel: working.cancel, native });
  return { native, working, tasks };
}

interface Ending {
  readonly calls: RunningCalls;
  readonly detached: DetachedReplies;
  readonly edges: Edges;
}

/** Waits up to `limitMs` for running calls to end, then cancels them. */
async function endCalls({ calls, detached, edges }: Ending, limitMs: number): Promise<void> {
  await calls.drain(limitMs);
  detached.stop();
  await edges.close();
  // Detached replies have no connection to wait for.
  await calls.drain(drainEndMs);
}

/** Counts and logs what calls cost beyond what their accounts could pay. */
function createLossReport({ metrics, log }: Pick<Parts, "metrics" | "log">) {
  return (accountId: string, lossNanos: bigint): void => {
    metrics.platformLoss.inc({ reason: "shortfall" }, Number(lossNanos));
    const loss = formatUsd(lossNanos);
    log.error({ accountId, loss }, "calls cost more than their account could pay: platform loss");
  };
}

/** Counts running calls and those refused at the limit. */
function createRunningCalls({ settings, metrics }: Parts): RunningCalls {
  return new RunningCalls(settings.maxConcurrentCalls, () =>
    metrics.limitRefusals.inc({ limit: "concurrent_calls" }),
  );
}

// Gauges of running calls and their holds, and the readiness check.

/** Registers the gauges. */
function watchCalls({
  metrics,
  calls,
  detached,
  ledger,
  jobs,
}: {
  metrics: Metrics;
  calls: RunningCalls;
  detached: DetachedReplies;
  ledger: LedgerWriter;
  jobs: BillingJobs;
}): void {
  metrics.gauge("uas_workers", "Processes that serve calls.", () => 1);
  metrics.gauge("uas_calls_running", "Inference calls that run.", () => calls.count);
  metrics.gauge(
    "uas_replies_drained",
    "Replies that are read on although their clients have left.",
    () => detached.count,
  );
  metrics.gauge(
    "uas_billing_holds_open",
    "Holds of this process's calls.",
    () => ledger.stats().openHolds,
  );
  metrics.gauge(
    "uas_billing_settlements_waiting",
    "Settlements that the database does not have yet.",
    () => ledger.stats().pendingSettles,
  );
  metrics.gauge(
    "uas_billing_journal_entries",
    "Settlements in the journal that the database does not have yet.",
    () => ledger.stats().journalEntries,
  );
  metrics.gauge(
    "uas_billing_journal_bytes",
    "Bytes of this process's settlement journal.",
    () => ledger.stats().journalBytes,
  );
  metrics.gauge(
    "uas_billing_journal_failures",
    "Writes to the settlement journal that failed since the start.",
    () => ledger.stats().journalFailures,
  );
  metrics.gauge(
    "uas_ledger_audit_findings",
    "Ledger rules found broken by this process's last audit, at most 100; hourly.",
    () => jobs.findings(),
    "max",
  );
  metrics.gauge(
    "uas_call_records_dropped",
    "Records of refused calls that were lost since the start.",
    () => ledger.stats().droppedRecords,
  );
}

/** Registers the gauge of the machine's clock. */
function watchClock(metrics: Metrics, clock: CorrectedClock): void {
  metrics.gauge(
    "uas_clock_offset_seconds",
    "By how much this machine's clock is ahead of the database's; negative: behind it.",
    () => clock.aheadMs / 1_000,
    "max",
  );
}

/** How long a readiness result is cached, in milliseconds. */
const readyMs = 1_000;

/** What readiness depends on. */
interface ReadinessOptions {
  readonly pool: Pool;
  readonly calls: Pick<RunningCalls, "isOpen">;
  readonly ledger: Pick<LedgerWriter, "blockedBy">;
}

/** Why calls cannot be served; `undefined` if they can. Never contacts a vendor. */
function createReadiness({
  pool,
  calls,
  ledger,
}: ReadinessOptions): () => Promise<string | undefined> {
  const isSilent = "the database does not answer";
  let checkedMs = Number.NEGATIVE_INFINITY;
  let answer: Promise<string | undefined> = Promise.resolve(isSilent);
  return async () => {
    if (!calls.isOpen) return "the gateway is stopping";
    if (performance.now() - checkedMs > readyMs) {
      checkedMs = performance.now();
      const query = pool.query("select 1").then(
        () => undefined,
        () => isSilent,
      );
      const late = new Promise<string>((resolve) => {
        setTimeout(resolve, readyMs, isSilent).unref();
      });
      answer = Promise.race([query, late]);
    }
    return (await answer) ?? ledger.blockedBy;
  };
}

// The vendors of the configuration, opened once for each of their credentials.

/** Options of {@link openVendors}. */
interface OpenVendorsOptions {
  readonly config: Config;
  readonly settings: Settings;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly database: Pick<Database, "pool" | "url">;
  readonly clock: Clock;
  /** Holds credentials to their limits. */
  readonly limiter: Limiter;
}

/** The vendors of a process. */
interface Vendors {
  /** By name, with the first credential: what a vendor stores belongs to one of them. */
  readonly vendors: ReadonlyMap<string, Vendor>;
  /** Those that store responses: by name, and also by `vendor#credential` where there are several. */
  readonly storing: ReadonlyMap<string, Vendor>;
  /** All, to be closed. */
  readonly clients: readonly Vendor[];
  readonly upstream: Upstream;
  /** Share breakers and health with other processes. */
  readonly sharing: readonly { start(): Promise<void>; stop(): Promise<void> }[];
}

/** Opens the vendors that a route uses. */
function openVendors({ config, settings, ...options }: OpenVendorsOptions): Vendors {
  const opened = openUsed(config);
  const shared = new Map([...opened].map(([name, open]) => [name, shareOf(open, settings)]));
  const { metrics, log, database, clock, limiter } = options;
  const targets = new Targets({ metrics, log, vendors: shared, shared: database });
  const health = new HealthStore({ pool: database.pool, clock, targets, log });
  const upstream = createUpstream({ targets, limiter, metrics, log });
  const { affinity } = upstream;
  // A process whose models have no choice needs no connection for it.
  const isShared = hasChoice(config, opened);
  const share = { pool: database.pool, url: database.url, affinity, targets, log };
  return {
    vendors: new Map([...opened].map(([name, { clients }]) => [name, clients[0]])),
    storing: storingVendors(opened),
    clients: [...opened.values()].flatMap(({ clients }) => clients),
    upstream,
    sharing: [targets, health, ...(isShared ? [new AffinityShare(share)] : [])],
  };
}

/** Whether a call may go to several routes or credentials. */
function hasChoice({ models }: Config, opened: ReadonlyMap<string, OpenVendor>): boolean {
  return (
    [...models.values()].some(({ routes }) => routes.length > 1) ||
    [...opened.values()].some(({ clients }) => clients.length > 1)
  );
}

/** Of the calls in flight that a vendor may have, each of several workers has its share, rounded up. */
function shareOf({ config, clients }: OpenVendor, { workers }: Settings): OpenVendor {
  const { maxInFlight } = config;
  return {
    config: { ...config, maxInFlight: maxInFlight && Math.ceil(maxInFlight / workers) },
    clients,
  };
}

function storingVendors(opened: ReadonlyMap<string, OpenVendor>): ReadonlyMap<string, Vendor> {
  const entries = [...opened].flatMap(([name, { config, clients }]): [string, Vendor][] => [
    [name, clients[0]],
    ...clients.map((client, index): [string, Vendor] => [
      `${name}#${config.credentials?.[index]?.name ?? ""}`,
      client,
    ]),
  ]);
  return new Map(entries);
}

function openUsed(config: Config): ReadonlyMap<string, OpenVendor> {
  const used = new Set(
    [...config.models.values()].flatMap((model) => model.routes.map((route) => route.vendor)),
  );
  const opened = new Map<string, OpenVendor>();
  for (const [name, vendor] of config.vendors) {
    const kind = used.has(name) ? vendorKinds[vendor.kind] : undefined;
    if (kind === undefined) continue;
    const [first = vendor, ...others] = vendor.credentials ?? [];
    const create = ({ apiKey }: Pick<VendorConfig, "apiKey">): Vendor =>
      kind.create({ ...vendor, apiKey });
    opened.set(name, { config: vendor, clients: [create(first), ...others.map(create)] });
  }
  return opened;
}
