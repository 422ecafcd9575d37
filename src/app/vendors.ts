/**
 * Opens the vendors of the configuration, once for each of their credentials, and the routing over
 * them.
 */
import type { Logger } from "pino";
import type { Config, Settings, VendorConfig } from "../config/config.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Limiter } from "../limits/limiter.ts";
import { type OpenVendor, Targets } from "../routing/targets.ts";
import { createUpstream, type Upstream } from "../routing/upstream.ts";
import { vendorKinds } from "../provider/index.ts";
import type { Vendor } from "../provider/vendor.ts";

/** Options of {@link openVendors}. */
interface OpenVendorsOptions {
  readonly config: Config;
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
  /** All, to be closed. */
  readonly clients: readonly Vendor[];
  readonly upstream: Upstream;
  /** Starts and stops with the gateway. */
  readonly targets: Targets;
}

/** Opens the vendors that a route uses. */
export function openVendors({ config, settings, ...options }: OpenVendorsOptions): Vendors {
  const opened = openUsed(config);
  const shared = new Map([...opened].map(([name, open]) => [name, shareOf(open, settings)]));
  const { metrics, log, limiter } = options;
  const targets = new Targets({ metrics, log, vendors: shared });
  const upstream = createUpstream({ targets, limiter, metrics, log });
  return {
    vendors: new Map([...opened].map(([name, { clients }]) => [name, clients[0]])),
    storingVendors: storingVendors(opened),
    clients: [...opened.values()].flatMap(({ clients }) => clients),
    upstream,
    targets,
  };
}

/** Each of several workers has its share of a vendor's maximum of calls in flight, rounded up. */
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
