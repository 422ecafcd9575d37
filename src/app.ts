/**
 * The wiring: with backend.ts and edges.ts the only place that knows every room. Here a server is put
 * together: the money's hot door, keys, vendors, background jobs; and taken apart in the right order.
 */
import type { Transport } from "@connectrpc/connect";
import type { Logger } from "pino";
import { InferenceService } from "../gen/uas/inference/v1/inference_service_pb.ts";
import { ResponseService } from "../gen/uas/inference/v1/response_service_pb.ts";
import { type Backend, type OpenOptions, openBackend, silent } from "./backend.ts";
import { billingPartitions, createBillingJobs } from "./billing/jobs.ts";
import { createLedger, type LedgerWriter } from "./billing/ledger-writer.ts";
import { createPriceBook, type PriceBook } from "./billing/price-book.ts";
import { callCost, holdAmount } from "./billing/price.ts";
import type { Config, Settings } from "./config/config.ts";
import { drainMs } from "./config/limits.ts";
import { keepMasterKey } from "./config/master-key.ts";
import { ensurePartitions } from "./db/partition.ts";
import { createEdges } from "./edges.ts";
import { createCatalogue } from "./inference/catalogue.ts";
import { createCountTokens } from "./inference/count-tokens.ts";
import { createExchange } from "./inference/exchange.ts";
import type { Pricing } from "./inference/run-options.ts";
import { RunningCalls } from "./inference/running-calls.ts";
import { createInferenceService } from "./inference/service.ts";
import { createInferenceState, type InferenceState } from "./inference/state/state.ts";
import { createUpstream } from "./inference/upstream.ts";
import { createAuthenticator } from "./key/authenticate.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { createReadiness } from "./readiness.ts";
import { type Service, serve } from "./rpc/service.ts";
import { vendorKinds } from "./vendor/index.ts";
import type { Vendor } from "./vendor/vendor.ts";

export { openBackend };

/** A gateway that is built. */
export interface App {
  /** Reaches accounts, keys and billing in this process, as the operator. */
  readonly transport: Transport;
  readonly metrics: Metrics;
  /** Begins to serve. @throws where a port is taken, naming it */
  listen(): Promise<{ readonly publicUrl: string; readonly internalUrl: string }>;
  /**
   * Stops: no new calls, running ones may finish for `drainMs` (default: see limits), then they are
   * ended; every hold is settled; everything that was opened is closed. Safe to call twice.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** Builds a gateway; it does not listen yet. */
export async function buildApp(options: OpenOptions): Promise<App> {
  const { settings, config, log = silent() } = options;
  const backend = await openBackend(options);
  try {
    return await assemble({ settings, config, log, backend });
  } catch (error) {
    await backend.close();
    throw error;
  }
}

type Parts = Required<OpenOptions> & { readonly backend: Backend };

async function assemble({ settings, config, log, backend }: Parts): Promise<App> {
  const { database } = backend;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const metrics = createMetrics();
  const calls = new RunningCalls();
  const prices = createPriceBook({ pool: database.pool });
  await prices.load([...config.models.values()].map((model) => model.price));
  const ledger = createLedger({ url: database.url, warn });
  const jobs = createBillingJobs({ pool: database.pool, warn });
  const authenticator = createAuthenticator({
    pool: database.pool,
    url: database.url,
    warn,
    onRefused: (reason) => metrics.authFailures.inc({ reason }),
  });
  const vendors = createVendors(config);
  watch({ metrics, calls, ledger });
  const masterKey = masterKeyOf(settings, log);
  const state = createInferenceState({ pool: database.pool, masterKey, vendors, metrics, log });
  const pricing = createPricing(prices);
  const parts = { config, vendors, ledger, pricing, calls, metrics, log, state };
  const services = [...backend.services, ...createInference(parts)];
  const { authenticate } = authenticator;
  const edges = await createEdges({
    settings,
    log,
    metrics,
    calls,
    services,
    authenticate,
    isReady: createReadiness(database.pool, calls),
  });
  await authenticator.start();
  await makePartitions(database.pool, warn);
  jobs.start();
  state.jobs.start();
  let closing: Promise<void> | undefined;
  return {
    transport: backend.transport,
    metrics,
    listen: () => edges.listen(),
    close: ({ drainMs: limitMs = drainMs } = {}) => {
      closing ??= (async () => {
        await calls.drain(limitMs);
        await edges.close();
        await Promise.all([jobs.stop(), state.jobs.stop()]);
        await ledger.close();
        await authenticator.close();
        await Promise.all([...vendors.values()].map((vendor) => vendor.close()));
        await backend.close();
      })();
      return closing;
    },
  };
}

interface InferenceParts {
  readonly config: Config;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly ledger: LedgerWriter;
  readonly pricing: Pricing;
  readonly calls: RunningCalls;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly state: InferenceState;
}

function createInference(parts: InferenceParts): Service[] {
  const { config, vendors, calls, metrics, log, state } = parts;
  const catalogue = createCatalogue(config.models);
  const upstream = createUpstream({ vendors, configs: config.vendors, metrics, log });
  const exchange = createExchange({ ...parts, catalogue, upstream });
  const countTokens = createCountTokens({ catalogue, upstream, calls });
  const inference = createInferenceService({ catalogue, exchange, countTokens });
  return [serve(InferenceService, inference), serve(ResponseService, state.service)];
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

function createPricing(prices: PriceBook): Pricing {
  return {
    version: ({ price }) => prices.version(price),
    hold: ({ price }, { input, output }) =>
      holdAmount({ price, inputTokens: input, outputTokens: output }),
    cost: ({ price }, usage) => callCost(price, usage),
  };
}

/** Several processes on one database must have the same: what one has sealed the others must open. */
function masterKeyOf({ masterKey, databaseUrl, dataDir }: Settings, log: Logger): Buffer {
  if (masterKey !== undefined) return masterKey;
  if (databaseUrl !== undefined) {
    log.warn(
      { dataDir },
      "UAS_MASTER_KEY is not set: this process uses the one of its data folder",
    );
  }
  return keepMasterKey(dataDir);
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

function watch({
  metrics,
  calls,
  ledger,
}: {
  metrics: Metrics;
  calls: RunningCalls;
  ledger: LedgerWriter;
}): void {
  metrics.gauge("uas_calls_running", "Inference calls that run.", () => calls.count);
  metrics.gauge(
    "uas_billing_holds_open",
    "Holds of this process's calls.",
    () => ledger.stats().openHolds,
  );
  metrics.gauge(
    "uas_billing_settlements_waiting",
    "Settlements that are not durable yet.",
    () => ledger.stats().waitingSettles,
  );
  metrics.gauge(
    "uas_call_records_dropped",
    "Records of refused calls that were lost since the start.",
    () => ledger.stats().droppedRecords,
  );
}
