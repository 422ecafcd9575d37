/**
 * The wiring of a server: it creates the rooms that need a running server, in the order in which
 * they depend on each other, and closes them in the right order. backend.ts creates the others:
 * accounts, keys, and the RPCs of billing and webhooks. edges.ts creates the edges.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Transport } from "@connectrpc/connect";
import type { Logger } from "pino";
import { createSignInObserver, type SignIn } from "../account/module.ts";
import { createAlertSending, createOperatorAlerts } from "../alert/module.ts";
import type { JournalNames } from "../billing/journal/journal-files.ts";
import type { Config } from "../config/config.ts";
import type { Failpoint } from "../billing/ledger/failpoints.ts";
import type { LedgerTimings } from "../billing/ledger/ledger.ts";
import { openLedger, prepareLedger } from "../billing/module.ts";
import { createPriceBook, createPricing } from "../billing/prices/pricing.ts";
import { countDeadlineMs, drainMs } from "../core/limits.ts";
import { createMetrics, type Metrics } from "../observe/metrics.ts";
import { openTraces } from "../observe/traces/open-traces.ts";
import { formatUsd } from "../core/money.ts";
import { createEventLog } from "../responses/background/event-log.ts";
import { createBackgroundStore } from "../responses/background/store.ts";
import { openLimiter } from "../limits/limiter.ts";
import { createInference, createPipeline } from "../calls/module.ts";
import { DetachedReplies } from "../calls/pipeline/disconnect.ts";
import { createResponses } from "../responses/module.ts";
import { RunningCalls } from "../calls/running-calls.ts";
import { createStoredState } from "../responses/stored/state.ts";
import { createTokenCounter } from "../tokens/counter.ts";
import { createAuthenticator } from "../key/authenticate.ts";
import { requireMasterKey } from "../key/master-key.ts";
import { createKeyCheck } from "../key/usable.ts";
import { createNativeRoom, type NativeRoomOptions } from "../native/module.ts";
import { ConfigService } from "../../gen/uas/config/v1/config_service_pb.ts";
import { serve } from "../core/contract-rules.ts";
import { createConfigService, type Reloaded } from "../operator/configuration/service.ts";
import { createOperatorRoom } from "../operator/module.ts";
import { createIdentifyService } from "../operator/service-credential/identify.ts";
import { openResults } from "../result/module.ts";
import { createOperatorJobs } from "../operator/jobs.ts";
import { createObjectStore } from "../result/object-store.ts";
import {
  createTaskProcessing,
  createTaskRoom,
  type TaskProcessingOptions,
} from "../task/module.ts";
import { fileSeconds } from "../provider/media/length.ts";
import { createWebhookSending } from "../webhook/module.ts";
import { type Backend, type OpenOptions, openBackend, silent } from "./backend.ts";
import { directHandlers } from "./direct-handlers.ts";
import { RequestLog } from "../edge/request-log.ts";
import { createEdges, type EdgeOptions } from "./edges.ts";
import { createConditions } from "./alert-conditions.ts";
import { watchCalls, watchClock, watchDisk, watchReadiness } from "./gauges.ts";
import { ClockCheck } from "./clock-check.ts";
import type { WatchedFile } from "./config-loader.ts";
import { ConfigReload } from "./config-reload.ts";
import { createReadiness } from "./readiness.ts";
import { openVendors } from "./vendors.ts";

/** Time for stopped calls to be settled. */
const drainEndMs = 5_000;

/** A complete gateway. */
export interface Gateway {
  /** Calls accounts, keys and billing within this process, as the operator. */
  readonly transport: Transport;
  readonly metrics: Metrics;
  readonly signIn: SignIn;
  /** The configuration in force. */
  readonly config: Config;
  /**
   * Reads the configuration again and puts it into force; running calls go on.
   *
   * @throws the reason why it cannot be used; then the one before stays in force
   */
  reload(): Promise<Reloaded>;
  /** Starts listening. @throws if a port is in use; the error names it */
  listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }>;
  /**
   * Stops the gateway. Calls are still served for `delayMs`; then no more connections are accepted.
   * Running calls may continue for `drainMs` and are then cancelled. Every hold is settled and
   * every resource closed. Safe to call twice.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Options of {@link Gateway.close}. */
export interface CloseOptions {
  /** Time for which everything is still served, while `/readyz` returns 503. Default 0. */
  readonly delayMs?: number;
  /**
   * Whether another process serves the same address: then `/readyz` keeps its answer. Default
   * false.
   */
  readonly isReplaced?: boolean;
  /** Maximum time that running calls may continue after that. Default: see limits. */
  readonly drainMs?: number;
}

/**
 * Options of {@link openGateway}. `pages`: the console's pages; none by default. `operatorSocket`:
 * the path of the socket of the command line; none by default. `journal`: the
 * journal files of a worker. By default a new one to write, and all of the data folder to replay.
 * For tests: `timings` of the ledger (default {@link LedgerTimings}), `taskTimings` of tasks, and
 * `failpoint`, called at each step of a money operation (none by default).
 */
export interface OpenGatewayOptions
  extends OpenOptions,
    Pick<EdgeOptions, "pages" | "readMetrics" | "operatorSocket"> {
  readonly journal?: JournalNames;
  /** The configuration file to watch. Default: none. */
  readonly configFile?: WatchedFile | undefined;
  /** Called with each configuration before it comes into force. Does nothing by default. */
  readonly onConfig?: (config: Config) => void;
  /** Makes the other processes of this gateway load the configuration. Default: there is none. */
  readonly reloadOthers?: () => void;
  readonly timings?: Partial<LedgerTimings>;
  readonly taskTimings?: TaskProcessingOptions["taskTimings"] & NativeRoomOptions["taskTimings"];
  readonly failpoint?: Failpoint;
}

/** Opens a gateway; it does not listen yet. */
export async function openGateway(options: OpenGatewayOptions): Promise<Gateway> {
  const { log = silent() } = options;
  const metrics = createMetrics();
  const backend = await openBackend({
    settings: options.settings,
    config: options.config,
    readConfig: options.readConfig,
    onUnreadable: options.onUnreadable,
    embeddedUrl: options.embeddedUrl,
    clock: options.clock,
    log,
    onLowBalance: createLowBalanceReport(metrics, log),
    signInObserver: createSignInObserver(metrics),
  });
  try {
    return await assemble(options, backend, { metrics, log: backend.log });
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** Creates the rooms of a server, connects them, and starts their jobs. */
async function assemble(
  options: OpenGatewayOptions,
  backend: Backend,
  { metrics, log }: { readonly metrics: Metrics; readonly log: Logger },
): Promise<Gateway> {
  const { settings } = options;
  const { database, clock, signIn, config } = backend;
  const { pool, taskPool, jobPool, url } = database;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const onLowBalance = createLowBalanceReport(metrics, log);
  const onLoss = createLossReport(metrics, log);
  await requireMasterKey(pool, backend.masterKey);
  const masterKey = backend.masterKey();

  const prices = createPriceBook({ pool });
  await prices.load(config.models.values());
  const pricing = createPricing(prices, clock);

  const exports = createObjectStore(config.storage, settings.dataDir);
  const { ledger, jobs: billingJobs } = openLedger({
    exports,
    database,
    settings,
    config,
    log,
    onLowBalance,
    onLoss,
    journal: options.journal,
    timings: options.timings,
    failpoint: options.failpoint,
  });

  const reload = new ConfigReload({
    config,
    loader: backend.loader,
    etag: backend.etag,
    onNext: options.onConfig ?? (() => {}),
    prices,
    database,
    file: options.configFile,
    processId: ledger.nodeId,
    metrics,
    log,
  });

  const authenticator = createAuthenticator({
    pool,
    url,
    warn,
    onRefused: (reason) => metrics.authFailures.inc({ reason }),
  });

  const limiter = openLimiter(url, ledger.nodeId);

  const opened = openVendors({ config, settings, limiter, metrics, log });
  const { vendors, storingVendors, upstream, targets } = opened;

  const calls = new RunningCalls(settings.maxConcurrentCalls, () =>
    metrics.limitRefusals.inc({ limit: "concurrent_calls" }),
  );
  const detached = new DetachedReplies();
  const counter = createTokenCounter({ warn });
  // Free counts have a separate thread: holds and settlements never wait for them (R-LIM-2).
  const freeCounter = createTokenCounter({ warn, deadlineMs: countDeadlineMs });

  const traces = await openTraces({ env: process.env, instanceId: ledger.nodeId, metrics, log });

  const pipeline = createPipeline({
    traces,
    config,
    database,
    masterKey,
    clock,
    ledger,
    pricing,
    upstream,
    limiter,
    calls,
    detached,
    counter,
    freeCounter,
    metrics,
    log,
  });

  const state = createStoredState({
    pool: taskPool,
    jobPool,
    masterKey,
    vendors: storingVendors,
    metrics,
    log,
  });
  const backgroundStore = createBackgroundStore(taskPool, state.responses);
  const backgroundEvents = createEventLog(taskPool);

  const results = openResults({
    pool: taskPool,
    jobPool,
    settings,
    config,
    warn,
    measure: fileSeconds,
  });

  const native = createNativeRoom({
    database,
    config,
    settings,
    clock,
    vendors,
    upstream,
    prices,
    masterKey,
    metrics,
    log,
    isKeyUsable: createKeyCheck(pool),
    onNews: () => processing.wake(),
    onLowBalance,
    taskTimings: options.taskTimings,
  });

  const processing = createTaskProcessing({
    database,
    config,
    settings,
    clock,
    vendors,
    upstream,
    prices,
    results,
    native,
    state,
    backgroundStore,
    backgroundEvents,
    traces,
    metrics,
    log,
    onLowBalance,
    onLoss,
    taskTimings: options.taskTimings,
  });

  const tasks = createTaskRoom({
    database,
    config,
    clock,
    vendors,
    prices,
    admission: pipeline.deps.admission,
    results,
    native,
    traces,
    metrics,
    onNews: processing.wake,
    onCancel: processing.cancel,
  });

  const responses = createResponses({
    pipeline: pipeline.deps,
    state,
    store: backgroundStore,
    events: backgroundEvents,
    tasks: tasks.background,
  });

  const inference = createInference({
    pipeline: pipeline.deps,
    state,
    settings,
    background: responses.background,
    pool,
    media: tasks.media,
  });

  const nativeCalls = native.serve({
    admission: pipeline.deps.admission,
    catalogue: pipeline.deps.catalogue,
    handlers: inference.handlers,
    calls,
    ledger,
    refusals: pipeline.deps.refusals,
  });

  const clockCheck = new ClockCheck({
    pool,
    clock,
    alarm: (message, fields) => log.error(fields, message),
    warn,
  });

  const operatorAlerts = createOperatorAlerts({
    database,
    config,
    metrics,
    log,
    conditions: createConditions({
      targets,
      ledger,
      jobs: billingJobs,
      clock: clockCheck,
      metrics,
      dataDir: settings.dataDir,
      config: () => reload.status,
    }),
  });

  const operator = createOperatorRoom({
    database,
    config,
    clock,
    upstream,
    testAlerts: () => operatorAlerts.test(),
  });

  const webhooks = createWebhookSending({
    database,
    secrets: backend.webhookSecrets,
    config: config.webhooks,
    traces,
    metrics,
    log,
  });

  const alerts = createAlertSending({
    database,
    config,
    metrics,
    log,
  });

  const requests = new RequestLog(log);
  const whyNotReady = createReadiness({ pool, calls, ledger, clock: clockCheck });
  const edges = await createEdges({
    settings,
    clock,
    metrics,
    log,
    requests,
    calls,
    services: [
      ...backend.services,
      ...inference.services,
      responses.service,
      tasks.service,
      nativeCalls.service,
      operator,
      serve(
        ConfigService,
        createConfigService({
          pool,
          jobPool,
          masterKey: backend.masterKey,
          status: () => reload.status,
          parse: backend.loader.parse,
          needsRestart: (next) => config.needsRestart(next),
          reload: () => reload.reload(),
          reloadOthers: options.reloadOthers ?? (() => {}),
        }),
      ),
    ],
    direct: directHandlers(inference.handlers, nativeCalls.handlers),
    authenticate: authenticator.authenticate,
    identifyService: createIdentifyService(pool),
    identify: signIn.identify,
    onRefusedKey: inference.onRefusedKey,
    whyNotReady,
    findFile: results.find,
    callbacks: tasks.callbacks,
    nativePrefixes: native.prefixes,
    corsOrigins: () => config.cors?.origins,
    pages: options.pages,
    readMetrics: options.readMetrics,
    operatorSocket: options.operatorSocket,
  });

  watchReadiness(metrics, whyNotReady);
  watchDisk(metrics, settings.dataDir);
  watchClock(metrics, clockCheck);
  watchCalls({ metrics, calls, detached, ledger, jobs: billingJobs });

  await clockCheck.compare();
  await authenticator.start();
  await prepareLedger(database, log);
  const jobs = [
    clockCheck.jobs,
    billingJobs,
    targets,
    ...pipeline.jobs,
    state.jobs,
    signIn.jobs,
    native.jobs,
    createOperatorJobs({ pool: jobPool, auditDays: () => config.retention?.audit, warn }),
    webhooks,
    alerts,
    reload,
    operatorAlerts,
  ];
  for (const each of [...jobs, results.jobs, tasks, processing]) each.start();

  const stop = async ({
    delayMs = 0,
    isReplaced = false,
    drainMs: limitMs = drainMs,
  }: CloseOptions): Promise<void> => {
    edges.announceStop(isReplaced);
    if (delayMs > 0) await sleep(delayMs);
    log.info("draining");
    edges.stopListening();
    const endCalls = async (): Promise<void> => {
      await calls.drain(limitMs);
      detached.stop();
      await edges.close();
      // Detached replies have no connection to wait for.
      await calls.drain(drainEndMs);
    };
    await Promise.all([endCalls(), processing.stop(limitMs)]);
    const stopping = [...jobs, results, tasks, pipeline.refusals, requests];
    await Promise.all(stopping.map((each) => each.stop()));
    await ledger.close();
    exports.close();
    await traces?.close();
    const open = [counter, freeCounter, authenticator, limiter, opened];
    await Promise.all(open.map((each) => each.close()));
    await backend.close();
  };
  let stopped: Promise<void> | undefined;
  return {
    transport: backend.transport,
    metrics,
    signIn,
    config,
    reload: () => reload.reload(),
    async listen() {
      const urls = await edges.listen();
      results.servedAt(urls);
      native.servedAt(urls);
      return urls;
    },
    close: (closeOptions = {}) => (stopped ??= stop(closeOptions)),
  };
}

/** Counts and logs accounts that fall below their low-balance threshold. */
function createLowBalanceReport(metrics: Metrics, log: Logger) {
  return (accountId: string, balanceNanos: bigint): void => {
    metrics.lowBalances.inc();
    const balance = formatUsd(balanceNanos);
    log.warn({ accountId, balance }, "an account has fallen below its low-balance threshold");
  };
}

/** Counts and logs costs of calls that their accounts could not pay. */
function createLossReport(metrics: Metrics, log: Logger) {
  return (accountId: string, lossNanos: bigint): void => {
    metrics.platformLoss.inc({ reason: "shortfall" }, Number(lossNanos));
    const loss = formatUsd(lossNanos);
    log.error({ accountId, loss }, "calls cost more than their account could pay: platform loss");
  };
}
