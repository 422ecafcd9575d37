/**
 * The routes whose vendors ignore the output limit of a request (R-MON-12). Calls to them hold for the most that their
 * model can make, in every process: the first process that notices writes a row, and all others hear of it.
 */
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { RouteConfig } from "../config/config.ts";
import type { Metrics } from "../core/metrics.ts";
import { Listener } from "../db/listener.ts";

/** A reply that was longer than its request allowed. */
export interface LimitOverrun {
  /** The call, for whoever looks into it. */
  readonly callId: string;
  /** The tokens of output that the request allowed. */
  readonly limitTokens: number;
  /** Those of the reply, as the vendor counted them; where it did not, as estimated. */
  readonly outputTokens: number;
}

/** Knows them. */
export interface UnlimitedRoutes {
  /** Whether calls to the route must hold for all that the model can make. */
  has(route: RouteConfig): boolean;
  /** Marks a route, in all processes within a second. Tells the operator once for each route. */
  add(route: RouteConfig, overrun: LimitOverrun): void;
  /** Begins to listen. Resolves when the marks of before are known, or the database could not be asked. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** What {@link createUnlimitedRoutes} needs. */
export interface UnlimitedRoutesOptions {
  readonly pool: Pool;
  /** The database. Contains a password: never logged. */
  readonly url: string;
  readonly metrics: Metrics;
  readonly log: Logger;
}

const channel = "unlimited_route";

/** A repeated mark changes nothing, and is told to nobody. */
const addStatement = `
with added as (
  insert into unlimited_route (vendor, model, call_id, limit_tokens, output_tokens)
    values ($1, $2, $3, $4, $5) on conflict do nothing returning vendor
) select pg_notify('${channel}', vendor) from added`;

/** Opens them. */
export function createUnlimitedRoutes(options: UnlimitedRoutesOptions): UnlimitedRoutes {
  return new StoredRoutes(options);
}

class StoredRoutes implements UnlimitedRoutes {
  readonly #options: UnlimitedRoutesOptions;
  readonly #listener: Listener;
  readonly #marked = new Set<string>();
  readonly #writing = new Set<Promise<void>>();

  constructor(options: UnlimitedRoutesOptions) {
    this.#options = options;
    this.#listener = new Listener({
      url: options.url,
      channel,
      applicationName: "uas-unlimited-routes",
      onNotice: () => this.#track(this.#load()),
      onGap: () => this.#track(this.#load()),
    });
  }

  has({ vendor, model }: RouteConfig): boolean {
    return this.#marked.size > 0 && this.#marked.has(routeKey(vendor, model));
  }

  add(route: RouteConfig, overrun: LimitOverrun): void {
    if (this.has(route)) return;
    const { vendor, model } = route;
    this.#marked.add(routeKey(vendor, model));
    this.#options.metrics.upstreamAlarms.inc({ vendor, reason: "limit_ignored" });
    this.#options.log.error(
      { vendor, vendorModel: model, ...overrun },
      "a vendor ignores the output limit: calls to this route hold for the model's max_output_tokens from now on",
    );
    this.#track(this.#write(route, overrun));
  }

  async start(): Promise<void> {
    await this.#listener.start();
    await Promise.all(this.#writing);
  }

  async stop(): Promise<void> {
    await this.#listener.close();
    await Promise.all(this.#writing);
  }

  async #write(
    { vendor, model }: RouteConfig,
    { callId, limitTokens, outputTokens }: LimitOverrun,
  ): Promise<void> {
    await this.#options.pool.query(addStatement, [
      vendor,
      model,
      callId,
      limitTokens,
      outputTokens,
    ]);
  }

  async #load(): Promise<void> {
    const { rows } = await this.#options.pool.query<{ vendor: string; model: string }>(
      "select vendor, model from unlimited_route",
    );
    for (const { vendor, model } of rows) this.#marked.add(routeKey(vendor, model));
  }

  /** What fails is known in this process, and comes again with the next reply of the route. */
  #track(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => {
        this.#options.log.warn({ err: error }, "the routes that ignore limits could not be shared");
      })
      .finally(() => this.#writing.delete(done));
    this.#writing.add(done);
  }
}

function routeKey(vendor: string, model: string): string {
  return `${vendor} ${model}`;
}
