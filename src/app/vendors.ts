/**
 * Opens the vendors of the configuration, once for each of their credentials, and the routing over
 * them.
 */
import type { Logger } from "pino";
import { isDeepStrictEqual } from "node:util";
import type { Config, Settings, VendorConfig } from "../config/config.ts";
import type { LiveConfig } from "../config/live-config.ts";
import { refill } from "../core/derived.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Limiter } from "../limits/limiter.ts";
import { type OpenVendor, Targets } from "../routing/targets.ts";
import { createUpstream, type Upstream } from "../routing/upstream.ts";
import { vendorKinds } from "../provider/index.ts";
import type { Vendor } from "../provider/vendor.ts";

/** Options of {@link openVendors}. */
interface OpenVendorsOptions {
  readonly config: LiveConfig;
  readonly settings: Settings;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Holds credentials to their limits. */
  readonly limiter: Limiter;
}

/** The vendors of a process. */
interface Vendors {
  /** By name, with the first credential: a stored object belongs to one credential. */
  readonly vendors: ReadonlyMap<string, Vendor>;
  /**
   * The vendors that store responses: by name, and also by `vendor#credential` if there are
   * several.
   */
  readonly storingVendors: ReadonlyMap<string, Vendor>;
  /** Cancels running requests and closes all connections. */
  close(): Promise<void>;
  readonly upstream: Upstream;
  /** Starts and stops with the gateway. */
  readonly targets: Targets;
}

/** Opens the vendors that a route uses, and again those that a reload changes. */
export function openVendors({ config, settings, ...options }: OpenVendorsOptions): Vendors {
  const { metrics, log, limiter } = options;
  let opened = openUsed(config, settings, new Map());
  const vendors = new Map(firstClients(opened));
  const storing = new Map(storingVendors(opened));
  const retired = new RetiredClients();
  const targets = new Targets({ metrics, log, vendors: opened });
  config.onExchange((next) => {
    const before = opened;
    opened = openUsed(next, settings, before);
    refill(vendors, firstClients(opened));
    refill(storing, storingVendors(opened));
    targets.exchange(opened);
    for (const [name, old] of before) if (opened.get(name) !== old) retired.add(old);
  });
  return {
    vendors,
    storingVendors: storing,
    upstream: createUpstream({ targets, limiter, metrics, log }),
    targets,
    async close() {
      const current = [...opened.values()].flatMap(({ clients }) => clients);
      await Promise.all([...current, ...retired.all()].map((client) => client.close()));
    },
  };
}

/** An open vendor, with the configuration that it was opened with. */
interface UsedVendor extends OpenVendor {
  /** As configured: `config` has this worker's share of the limits. */
  readonly configured: VendorConfig;
}

/** The clients of vendors that a reload has replaced. Their requests may run until their limit. */
class RetiredClients {
  readonly #clients = new Set<Vendor>();

  add({ config, clients }: OpenVendor): void {
    for (const client of clients) {
      this.#clients.add(client);
      const end = (): void => void this.#close(client);
      setTimeout(end, config.timeouts.totalMs ?? longestMs).unref();
    }
  }

  all(): readonly Vendor[] {
    return [...this.#clients];
  }

  async #close(client: Vendor): Promise<void> {
    if (this.#clients.delete(client)) await client.close();
  }
}

/** The longest request of a vendor without a limit of its own. */
const longestMs = 3_600_000;

function firstClients(opened: ReadonlyMap<string, OpenVendor>): (readonly [string, Vendor])[] {
  return [...opened].map(([name, { clients }]) => [name, clients[0]]);
}

/** Each of several workers has its share of a vendor's maximum of calls in flight, rounded up. */
function shareOf(config: VendorConfig, { workers }: Settings): VendorConfig {
  const { maxInFlight } = config;
  return { ...config, maxInFlight: maxInFlight && Math.ceil(maxInFlight / workers) };
}

function storingVendors(opened: ReadonlyMap<string, OpenVendor>): (readonly [string, Vendor])[] {
  return [...opened].flatMap(([name, { config, clients }]): (readonly [string, Vendor])[] => [
    [name, clients[0]],
    ...clients.map((client, index): [string, Vendor] => [
      `${name}#${config.credentials?.[index]?.name ?? ""}`,
      client,
    ]),
  ]);
}

/** Opens the vendors of all routes. Those of `before` with the same configuration stay open. */
function openUsed(
  config: Config,
  settings: Settings,
  before: ReadonlyMap<string, UsedVendor>,
): ReadonlyMap<string, UsedVendor> {
  const used = new Set(
    [...config.models.values()].flatMap((model) => model.routes.map((route) => route.vendor)),
  );
  const opened = new Map<string, UsedVendor>();
  for (const [name, vendor] of config.vendors) {
    if (!used.has(name)) continue;
    const old = before.get(name);
    const isSame = old !== undefined && isDeepStrictEqual(old.configured, vendor);
    const open = isSame ? old : openVendor(vendor, settings);
    if (open !== undefined) opened.set(name, open);
  }
  return opened;
}

/** Opens a vendor once for each of its credentials; undefined if its kind is not served. */
function openVendor(vendor: VendorConfig, settings: Settings): UsedVendor | undefined {
  const kind = vendorKinds[vendor.kind];
  if (kind === undefined) return undefined;
  const [first = vendor, ...others] = vendor.credentials ?? [];
  const create = ({ apiKey }: Pick<VendorConfig, "apiKey">): Vendor =>
    kind.create({ ...vendor, apiKey });
  const clients = [create(first), ...others.map(create)] as const;
  return { configured: vendor, config: shareOf(vendor, settings), clients };
}
