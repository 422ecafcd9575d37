/**
 * The routes whose vendors ignore the output limit of a request (R-MON-12). Calls to them hold for the maximum output
 * of their model, in every process: the first process that notices writes a row, and the database notifies the others.
 */
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { RouteConfig } from "../config/config.ts";
import type { Metrics } from "../core/metrics.ts";
import { Listener } from "../db/listener.ts";
import type { DatabaseAddress } from "../db/servers.ts";

/** A reply that exceeded the output limit of its request. */
export interface LimitOverrun {
  /** The call, for the operator. */
  readonly callId: string;
  /** The output token limit of the request. */
  readonly limitTokens: number;
  /** The output tokens of the reply, as the vendor reported them. */
  readonly outputTokens: number;
}

/** The unlimited routes, shared by all processes. */
export interface UnlimitedRoutes {
  /** Whether calls to the route must hold for the maximum output of the model. */
  has(route: RouteConfig): boolean;
  /** Marks a route, in all processes within a second. Logs and counts each route once. */
  add(route: RouteConfig, overrun: LimitOverrun): void;
  /** Starts to listen. Resolves when the stored marks are loaded, or the database could not be reached. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Options of {@link createUnlimitedRoutes}. */
export interface UnlimitedRoutesOptions {
  readonly pool: Pool;
  /** The database URL. It contains a password: never log it. */
  readonly url: DatabaseAddress;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Notifies of marks that are added or cleared. */
export const unlimitedRouteChannel = "unlimited_route";

/** A repeated mark changes nothing and notifies nobody. */
const addStatement = `
with added as (
  insert into unlimited_route (vendor, model, call_id, limit_tokens, output_tokens)
    values ($1, $2, $3, $4, $5) on conflict do nothing returning vendor
) select pg_notify('${unlimitedRouteChannel}', vendor) from added`;

/** Creates the unlimited routes; {@link UnlimitedRoutes.start} loads them. */
export function createUnlimitedRoutes(options: UnlimitedRoutesOptions): UnlimitedRoutes {
  return new StoredRoutes(options);
}

class StoredRoutes implements UnlimitedRoutes {
  readonly #options: UnlimitedRoutesOptions;
  readonly #listener: Listener;
  #marked = new Set<string>();
  /** The marks of this process that are not stored yet. */
  readonly #unstored = new Set<string>();
  readonly #writing = new Set<Promise<void>>();
  /** How many loads have begun, and the newest one whose answer is in use. */
  #loads = 0;
  #loaded = 0;

  constructor(options: UnlimitedRoutesOptions) {
    this.#options = options;
    this.#listener = new Listener({
      url: options.url,
      channel: unlimitedRouteChannel,
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
    this.#unstored.add(routeKey(vendor, model));
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
    this.#unstored.delete(routeKey(vendor, model));
  }

  async #load(): Promise<void> {
    const number = ++this.#loads;
    const { rows } = await this.#options.pool.query<{ vendor: string; model: string }>(
      "select vendor, model from unlimited_route",
    );
    // An older answer may come later.
    if (number < this.#loaded) return;
    this.#loaded = number;
    // A mark that is not stored any more was cleared.
    this.#marked = new Set(this.#unstored);
    for (const { vendor, model } of rows) this.#marked.add(routeKey(vendor, model));
  }

  /** Logs a failure. This process still knows the mark, and the next overrun of the route marks it again elsewhere. */
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
