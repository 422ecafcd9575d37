/**
 * The routes whose vendors ignore the output limit of a request (R-MON-12). One reply proves
 * little: a request may make an honest vendor count more, by thinking or predictions. So a reply
 * above its limit makes only its account hold for the maximum output of the model there; several of
 * them, of several accounts, mark the route for all, in every process: the first process that
 * notices writes a row, and the database notifies the others. A mark ends when as many replies have
 * kept their limits.
 */
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { RouteConfig } from "../config/config.ts";
import type { Metrics } from "../observe/metrics.ts";
import { Listener } from "../db/pool/listener.ts";
import type { DatabaseAddress } from "../db/pool/server.ts";

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
  /** Whether an account's calls to the route must hold for the maximum output of the model. */
  has(route: RouteConfig, accountId: string): boolean;
  /**
   * Counts a reply above its limit. Marks the route after several, of several accounts: logged, and
   * counted once.
   */
  add(route: RouteConfig, accountId: string, overrun: LimitOverrun): void;
  /** Counts a reply within its limit, which ends marks. */
  kept(route: RouteConfig, accountId: string): void;
  /**
   * Starts to listen. Resolves when the stored marks are loaded, or the database could not be
   * reached.
   */
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

/** A repeated mark changes nothing and sends no notification. */
const addStatement = `
with added as (
  insert into unlimited_route (vendor, model, call_id, limit_tokens, output_tokens)
    values ($1, $2, $3, $4, $5) on conflict do nothing returning vendor
) select pg_notify('${unlimitedRouteChannel}', vendor) from added`;

const removeStatement = `
with removed as (
  delete from unlimited_route where vendor = $1 and model = $2 returning vendor
) select pg_notify('${unlimitedRouteChannel}', vendor) from removed`;

/** Replies above their limits, and accounts that got them, which mark a route. */
const overrunsMin = 3;
const accountsMin = 2;

/** Routes and accounts that a process remembers, against vendors with many. */
const rememberedMax = 10_000;

/** The state of one route as seen by this process. */
class RouteWatch {
  /** Replies above their limits since the last that ended a mark, by account. */
  readonly #overruns = new Map<string, number>();
  /** Replies that an account, or the route, must get within their limits. */
  #toKeep = 0;

  has(accountId: string): boolean {
    return this.#overruns.has(accountId);
  }

  get isEmpty(): boolean {
    return this.#overruns.size === 0 && this.#toKeep === 0;
  }

  /** Counts an overrun. @returns whether the route is to be marked */
  add(accountId: string): boolean {
    if (this.#overruns.size >= rememberedMax) this.#overruns.clear();
    this.#overruns.set(accountId, (this.#overruns.get(accountId) ?? 0) + 1);
    const count = this.#overruns.values().reduce((sum, each) => sum + each, 0);
    this.#toKeep = count;
    return count >= overrunsMin && this.#overruns.size >= accountsMin;
  }

  /** Counts a reply within its limit. @returns whether the mark of the route ends */
  kept(accountId: string): boolean {
    const left = (this.#overruns.get(accountId) ?? 0) - 1;
    if (left > 0) this.#overruns.set(accountId, left);
    else this.#overruns.delete(accountId);
    if (this.#toKeep > 0) this.#toKeep -= 1;
    return this.#toKeep === 0;
  }

  /** Takes over a mark of another process. */
  marked(): void {
    this.#toKeep ||= overrunsMin;
  }
}

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
  readonly #watched = new Map<string, RouteWatch>();
  readonly #writing = new Set<Promise<void>>();
  /** Number of started loads; the newest one with a result is in use. */
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

  has({ vendor, model }: RouteConfig, accountId: string): boolean {
    if (this.#marked.size === 0 && this.#watched.size === 0) return false;
    const key = routeKey(vendor, model);
    return this.#marked.has(key) || this.#watched.get(key)?.has(accountId) === true;
  }

  add(route: RouteConfig, accountId: string, overrun: LimitOverrun): void {
    const { vendor, model } = route;
    const key = routeKey(vendor, model);
    const watch = this.#watched.get(key) ?? new RouteWatch();
    this.#watched.set(key, watch);
    if (!watch.add(accountId) || this.#marked.has(key)) return;
    this.#marked.add(key);
    this.#unstored.add(key);
    this.#options.metrics.upstreamAlarms.inc({ vendor, reason: "limit_ignored" });
    this.#options.log.error(
      { vendor, vendorModel: model, ...overrun },
      "a vendor ignores the output limit: calls to this route hold for the model's max_output_tokens until it keeps limits again",
    );
    this.#track(this.#write(route, overrun));
  }

  kept({ vendor, model }: RouteConfig, accountId: string): void {
    if (this.#marked.size === 0 && this.#watched.size === 0) return;
    const key = routeKey(vendor, model);
    const watch = this.#watched.get(key);
    if (watch === undefined || !watch.kept(accountId)) return;
    if (watch.isEmpty) this.#watched.delete(key);
    if (!this.#marked.delete(key)) return;
    this.#unstored.delete(key);
    this.#options.log.info({ vendor, vendorModel: model }, "a vendor keeps the output limit again");
    this.#track(this.#remove(vendor, model));
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

  async #remove(vendor: string, model: string): Promise<void> {
    await this.#options.pool.query(removeStatement, [vendor, model]);
  }

  async #load(): Promise<void> {
    const number = ++this.#loads;
    const { rows } = await this.#options.pool.query<{ vendor: string; model: string }>(
      "select vendor, model from unlimited_route",
    );
    // An older answer may come later.
    if (number < this.#loaded) return;
    this.#loaded = number;
    // A stored mark that no longer exists was cleared.
    this.#marked = new Set(this.#unstored);
    for (const { vendor, model } of rows) {
      const key = routeKey(vendor, model);
      this.#marked.add(key);
      const watch = this.#watched.get(key) ?? new RouteWatch();
      this.#watched.set(key, watch);
      watch.marked();
    }
  }

  /**
   * Logs a failure. This process still has the mark, and the next overrun of the route marks it
   * again for the others.
   */
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
