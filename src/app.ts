/**
 * The wiring: with backend.ts and edges.ts the only code that knows every room. It builds a server (ledger, keys,
 * vendors, background jobs) and closes it in the right order.
 */
import { setTimeout } from "node:timers/promises";
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
import { openLimiter } from "./inference/limits/limiter.ts";
import { RunningCalls } from "./inference/running-calls.ts";
import { createTokenCounter } from "./inference/tokens/counter.ts";
import { createInferenceState } from "./inference/state/state.ts";
import { createAuthenticator } from "./key/authenticate.ts";
import { createMetrics, type Metrics } from "./core/metrics.ts";
import { formatUsd } from "./core/money.ts";
import { createNativeRoom, type NativeRoom, type NativeRoomOptions } from "./native/module.ts";
import { createOperatorRoom } from "./operator/module.ts";
import { createReadiness, watchCalls } from "./app/gauges.ts";
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
import { openVendors } from "./app/vendors.ts";
import { WarmUp } from "./app/warm-up.ts";
import { createWebhookSending } from "./webhook/module.ts";

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

/** Counts that cost nothing have a thread of their own: holds and settlements never wait for them (R-LIM-2). */
function createCounters(warn: (message: string, fields: object) => void) {
  const freeCounter = createTokenCounter({ warn, deadlineMs: countDeadlineMs });
  return { counter: createTokenCounter({ warn }), freeCounter };
}

async function assemble(built: Parts): Promise<App> {
  const { settings, config, log, metrics, backend, onLowBalance, pages, readMetrics } = built;
  const { database, signIn, anchor } = backend;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const [calls, detached] = [createRunningCalls(built), new DetachedReplies()];
  const [onLoss, prices] = [createLossReport(built), createPriceBook({ pool: database.pool })];
  await prices.load(config.models.values());
  const { ledger, jobs } = openLedger({ ...built, database, anchor, onLoss });
  const { pool, url } = database;
  const onRefused = (reason: string): void => metrics.authFailures.inc({ reason });
  const authenticator = createAuthenticator({ pool, url, warn, onRefused });
  const [counters, limiter] = [createCounters(warn), openLimiter(url, ledger.nodeId)];
  const opened = openVendors({ ...built, database, limiter });
  const { vendors, storing, clients, upstream, sharing } = opened;
  watchCalls({ metrics, calls, detached, ledger, jobs });
  const masterKey = backend.masterKey();
  const state = createInferenceState({ pool, masterKey, vendors: storing, metrics, log });
  const facts = { config, vendors, metrics, log, state, ...counters };
  const parts = { ...facts, ledger, pricing: createPricing(prices), calls, detached };
  const results = openResults({ pool, settings, config, warn, measure: fileSeconds });
  const work = { database, config, vendors, prices, metrics, upstream, state };
  const { taskTimings = {} } = built;
  const common = { ...work, settings, log, onLowBalance, onLoss, masterKey, results, taskTimings };
  const { native, working, tasks } = createTaskRooms(common);
  const inference = createInference({ ...parts, limiter, settings, database, upstream, tasks });
  const natives = native.serve({ ...parts, ...inference });
  const own = [...inference.services, tasks.service, natives.service, createOperatorRoom(work)];
  const sending = createWebhookSending({ backend, config, metrics, log });
  const alerts = createAlertSending({ database, config, metrics, log });
  const warm = new WarmUp({ ...parts, models: config.models.values() }, settings.isWarmedUp);
  const edges = await createEdges({
    ...{ settings, log, metrics, calls, results, tasks, native, signIn, pages, readMetrics },
    services: [...backend.services, ...own].flat(),
    corsOrigins: config.cors?.origins,
    authenticate: authenticator.authenticate,
    onRefusedKey: inference.refusedKeys.record,
    isReady: createReadiness(pool, calls, () => warm.isDone),
    direct: directHandlers(inference.handlers, natives.handlers),
  });
  await authenticator.start();
  await prepareLedger(database, log);
  const roomJobs = [jobs, ...sharing, ...inference.jobs, state.jobs, signIn.jobs, native.jobs];
  const starting = [...roomJobs, results.jobs, sending, alerts, tasks, working];
  for (const each of starting) await each.start();
  const stopping = [...roomJobs, sending, alerts, results, tasks, inference.refusedKeys, warm];
  const open = [...Object.values(counters), authenticator, limiter, ...clients];
  const closing = { log, calls, detached, edges, working, stopping, ledger, open, backend };
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
  if (delayMs > 0) await setTimeout(delayMs);
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
