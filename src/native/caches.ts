/**
 * Prompt caches at vendors, which bill their storage by the hour. A request that creates a cache is
 * charged for its tokens and for the storage until it expires; one that prolongs it, for the added
 * storage. Deleted or shortened storage was paid for: nothing is refunded, and nothing is charged
 * twice. A cache exists for its account only while its storage is paid.
 */
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Pool } from "pg";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { type Usage, UsageSchema, UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { cacheLifeMsMax, cacheSlackMs, nativeKeptBytesMax, replyBytesMax } from "../core/limits.ts";
import { pricedUnits } from "../config/price.ts";
import { neverCancelled } from "../core/cancel-signal.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { invalid } from "../core/validation.ts";
import type { SentReply } from "../core/sink.ts";
import { transact } from "../db/pool/transaction.ts";
import { type BilledFeatures, refuseUnpriced } from "../dialect/features/billed-features.ts";
import { asJob } from "../calls/adapters/job-reply.ts";
import {
  type Delivered,
  type Metered,
  meterInput,
  nothingMetered,
} from "../calls/pipeline/metering.ts";
import {
  CallAdapter,
  ReadRequest,
  type Recalled,
  type ReplyHead,
  type ReplyStream,
  type RequestSummary,
  type VendorRefusal,
  type WholeReply,
} from "../calls/pipeline/adapter.ts";
import { type PlannedRoute } from "../routing/planned-route.ts";
import { type PreparedCall } from "../routing/prepared-call.ts";
import { unusableReply } from "../routing/upstream-refusal.ts";
import type {
  NativeCacheFigures,
  NativeCacheLife,
  NativeCacheListRoute,
  NativeCacheRoute,
  NativeCaches,
} from "../provider/native.ts";
import { bufferedBody } from "../provider/reply.ts";
import type { Vendor } from "../provider/vendor.ts";
import { boundTo, credentialOf } from "./adapter.ts";
import type { NativeContext } from "./context.ts";
import { answer } from "./job-requests.ts";
import { checkModel, findNamed, type NamedModel, type NativeModel, noSuchModel } from "./models.ts";
import { callPath, type NativeExchange, withCredential } from "./mount.ts";
import { checkObjects } from "./refusal.ts";
import { parseObject } from "./reply-stream.ts";
import { customerHeaders, vendorRequest } from "./send.ts";
import { checkReferences, noSuchObject, type ObjectOwner, removeObject } from "./store.ts";

type CacheExchange = NativeExchange<NativeCacheRoute>;

/**
 * Creates a cache, or changes when it expires.
 *
 * @throws GatewayError if no head was sent yet
 */
export async function changeCache(
  exchange: CacheExchange,
  context: NativeContext,
): Promise<SentReply> {
  const { route, request, caller, requestId, signal, sink } = exchange;
  const name = route.ownedName?.(request);
  if (name !== undefined) context.admission.account(caller);
  const stored = name === undefined ? undefined : await findCache(exchange, context, name);
  const adapter = new CacheAdapter(exchange, context, stored);
  try {
    return await context.handlers.runAdapter(adapter, { caller, requestId, signal }, sink);
  } catch (error) {
    await adapter.request?.takeBack();
    throw error;
  }
}

/**
 * Lists the caller's caches from the stored descriptions: the vendor's list contains the caches of
 * all customers.
 */
export async function listCaches(
  exchange: NativeExchange<NativeCacheListRoute>,
  context: NativeContext,
): Promise<void> {
  const { mount, route, request, caller } = exchange;
  const { limit, after = "" } = route.page(request);
  const values = [caller.accountId, mount.config.name, after, limit + 1];
  const { rows } = await mapDatabaseLoss(
    context.pool.query<Pick<StoredCache, "name" | "body">>(sql.list, values),
  );
  const page = rows.slice(0, limit);
  const last = rows.length > page.length ? page.at(-1)?.name : undefined;
  const texts = page.map(({ body }) => body.toString("utf8"));
  await answer(exchange, context, { body: Buffer.from(route.body(texts, last)) });
}

/** A cache that exists. */
interface StoredCache {
  readonly name: string;
  /** The name of the credential that created it; empty for the vendor's only or first one. */
  readonly credential: string;
  /** The key of its model. */
  readonly model: string;
  readonly tokens: number;
  /** Until when its storage was charged. */
  readonly paid_time: Date;
  /** The vendor's last description. */
  readonly body: Buffer;
}

const sql = {
  find: `select name, credential, model, tokens, paid_time, body from native_object
    where vendor = $1 and account_id = $2 and name = $3 and expire_time > now()`,
  list: `select name, body from native_object
    where account_id = $1 and vendor = $2 and name > $3 and expire_time > now() order by name limit $4`,
  insert: `insert into native_object
    (vendor, account_id, name, credential, model, tokens, expire_time, paid_time, body)
    values ($1, $2, $3, $4, $5, $6, $7, $7, $8) on conflict (vendor, name) do nothing`,
  lock: `select paid_time from native_object where vendor = $1 and account_id = $2 and name = $3 for update`,
  update: `update native_object set expire_time = $4, paid_time = greatest(paid_time, $4), body = $5
    where vendor = $1 and account_id = $2 and name = $3`,
} as const;

/** @throws GatewayError NOT_FOUND if the caller has no such cache, or it has expired */
async function findCache(
  { mount, caller }: Pick<NativeExchange, "mount" | "caller">,
  { pool }: { readonly pool: Pool },
  name: string,
): Promise<StoredCache> {
  const values = [mount.config.name, caller.accountId, name];
  const { rows } = await mapDatabaseLoss(pool.query<StoredCache>(sql.find, values));
  const [found] = rows;
  if (found === undefined) throw noSuchObject();
  return found;
}

/** A change of a cache, for the pipeline. */
class CacheAdapter extends CallAdapter<Buffer> {
  override readonly acceptsAnyModel = true;
  /** The request, once it was read. */
  request: CacheRequest | undefined;
  readonly #exchange: CacheExchange;
  readonly #context: NativeContext;
  readonly #stored: StoredCache | undefined;
  #model = "";

  constructor(exchange: CacheExchange, context: NativeContext, stored: StoredCache | undefined) {
    super();
    this.#exchange = exchange;
    this.#context = context;
    this.#stored = stored;
  }

  get path(): string {
    return callPath(this.#exchange);
  }

  read(): ReadRequest<Buffer> {
    const { mount, route, request } = this.#exchange;
    request.needBody();
    const find = (name: string) => this.#context.findModel(mount.vendor.name, name);
    const { named, found } =
      route.model === undefined
        ? { named: undefined, found: find(this.#stored?.model ?? "") }
        : findNamed(request, route.model, find);
    this.#model = found?.model.key ?? named?.name ?? this.#stored?.model ?? "";
    const facts = { named, found, name: this.#model, stored: this.#stored };
    return (this.request = new CacheRequest(this.#exchange, this.#context, facts));
  }

  modelName(): string {
    return this.#model;
  }
}

interface CacheFacts {
  /**
   * The model in the request; undefined if the request changes an existing cache and names none.
   */
  readonly named: NamedModel | undefined;
  /** Undefined if this vendor does not serve it. */
  readonly found: NativeModel | undefined;
  /** The key of the model, or its name in the request. */
  readonly name: string;
  /** Undefined if the request creates a cache. */
  readonly stored: StoredCache | undefined;
}

/** The result of a change, in the vendor's reply. */
interface Change {
  readonly usage: Usage;
  readonly storedTokenHours: number;
}

/** A request that creates a cache or changes when it expires. */
class CacheRequest extends ReadRequest<Buffer> {
  override readonly dialect = Dialect.UNSPECIFIED;
  // A second cache would be stored, and billed, in addition to the first.
  override readonly isRepeatable: boolean;
  readonly text: RequestSummary;
  readonly #exchange: CacheExchange;
  readonly #context: NativeContext;
  readonly #facts: CacheFacts;
  readonly #features: BilledFeatures | undefined;
  readonly #life: NativeCacheLife | undefined;
  readonly #startMs: number;
  #owner: ObjectOwner | undefined;
  /** The name of the cache that was created. */
  #created: string | undefined;
  #change: Change | undefined;

  constructor(exchange: CacheExchange, context: NativeContext, facts: CacheFacts) {
    super();
    this.#exchange = exchange;
    this.#context = context;
    this.#facts = facts;
    this.#startMs = context.clock.now();
    const { request } = exchange;
    const { stored, found, name } = facts;
    this.isRepeatable = stored !== undefined;
    const { bytes } = request;
    const text = { model: name, stream: false, maxOutputTokens: 0, choices: 1, bytes };
    this.text = text;
    if (found === undefined) return;
    const { model } = found;
    checkModel(model, this.#caches.types);
    this.#life = this.#caches.lifeOf(request, stored === undefined);
    checkLife(this.#life, this.#startMs);
    if (!pricedUnits(model, this.#startMs)("cache_storage")) {
      throw refuseUnpriced("ttl", "storage of a prompt cache", "cache_storage");
    }
    this.#features =
      stored === undefined ? this.#caches.featuresOf(request, model, this.#startMs) : undefined;
    const seconds = this.#maxSeconds(this.#life);
    const tokens = stored?.tokens ?? Math.min(request.inputTokens, contextOf(found));
    this.text = { ...text, units: { storedTokenHours: tokenHours(tokens, seconds) } };
  }

  override plan(): readonly PlannedRoute[] {
    // To the end, regardless of `on_disconnect`. A cache whose name was not read could not be used,
    // listed or deleted, and Google would bill its storage.
    const detachedReadMs = Number.POSITIVE_INFINITY;
    return [{ route: this.#found.route, dialect: this.dialect, detachedReadMs }];
  }

  override async recall(routes: readonly PlannedRoute[]): Promise<Recalled<Buffer>> {
    const { mount } = this.#exchange;
    const owned = await checkReferences(this.#exchange, this.#context);
    const credential = this.#facts.stored?.credential ?? owned?.credential;
    if (credential === undefined) return { request: this, routes };
    return { request: this, routes: boundTo(mount, routes, credential) };
  }

  prepare(_model: ModelConfig, { route }: PlannedRoute): PreparedCall {
    const { named, stored } = this.#facts;
    const change = named && { named, vendorModel: route.model };
    const sent = vendorRequest(this.#exchange, this.#context.publicUrl(), change);
    const send: PreparedCall["send"] = async (vendor, signal) => {
      const { native } = vendor;
      if (native === undefined) throw new TypeError(`${vendor.name} has no form of its own`);
      const begun = native.send({ ...sent, signal });
      const reply = await (stored === undefined ? asJob(begun) : begun);
      const { status } = reply;
      if (status < 200 || status > 299) return checkObjects(this.#exchange.mount, reply);
      // The cache has an owner and is paid for before its creator receives its name, even after a
      // disconnect.
      const body = await reply.body.whole(replyBytesMax);
      this.#change = await (stored === undefined
        ? this.#create(body, vendor)
        : this.#prolong(body, stored));
      return { ...reply, body: bufferedBody(body) };
    };
    const features = this.#features;
    return { headers: sent.headers, body: sent.body, dropped: [], features, send };
  }

  override isStreamed(): boolean {
    return false;
  }

  whole(body: Buffer): WholeReply<Buffer> {
    const change = this.#change;
    return {
      body,
      usage: change?.usage,
      textBytes: 0,
      units: change && { storedTokenHours: change.storedTokenHours },
    };
  }

  stream(): ReplyStream<Buffer> {
    throw invalid(undefined, "This request cannot be streamed: leave streaming off");
  }

  override meter(delivered: Delivered): Metered {
    const { reported: usage, units } = delivered;
    if (usage !== undefined) {
      return { usage, source: UsageSource.UPSTREAM, units, isCharged: true };
    }
    return this.#facts.stored === undefined ? meterInput(delivered) : nothingMetered;
  }

  headers({ upstream, length }: ReplyHead): Record<string, string> {
    const reply = { headers: upstream, length };
    return customerHeaders(this.#exchange, this.#context.publicUrl(), reply);
  }

  refusal({ body }: VendorRefusal): Buffer {
    return body;
  }

  /**
   * Deletes a created cache that cannot be paid for or recorded: it would be stored without an
   * owner.
   */
  async takeBack(): Promise<void> {
    const name = this.#created;
    const owner = this.#owner;
    if (name === undefined || owner === undefined) return;
    this.#created = undefined;
    const { mount } = this.#exchange;
    const { transport } = withCredential(mount, owner.credential);
    const [{ name: base }] = transport.bases;
    const at = { base, method: "DELETE", target: this.#caches.path(name) } as const;
    try {
      const sent = { ...at, headers: {}, body: [], signal: neverCancelled };
      const { body, status } = await transport.send(sent);
      body.cancel();
      if (status > 299) throw new Error(`status ${status}`);
      await removeObject(this.#context.pool, owner, name);
    } catch (error) {
      const fields = { vendor: mount.config.name, cache: name, err: error };
      this.#context.log.warn(fields, "an unpaid prompt cache could not be deleted at its vendor");
    }
  }

  /** Records the owner and payer of a new cache. */
  async #create(body: Buffer, vendor: Vendor): Promise<Change> {
    const { mount, caller } = this.#exchange;
    const json = parseObject(body.toString("utf8"));
    const name = json && this.#caches.nameOf(json);
    if (json === undefined || name === undefined) throw unusableReply("a cache without a name");
    const { name: vendorName } = mount.config;
    const credential = credentialOf(mount, vendor);
    const owner = { vendor: vendorName, accountId: caller.accountId, credential };
    [this.#created, this.#owner] = [name, owner];
    const figures = this.#figures(json, body);
    const { tokens } = figures;
    const seconds = Math.min(secondsOf(this.#life, figures), this.#maxSeconds(this.#life));
    const expireTime = new Date(Math.min(figures.expireMs, this.#latestMs));
    const model = this.#found.model.key;
    const values = [
      vendorName,
      caller.accountId,
      name,
      credential,
      model,
      tokens,
      expireTime,
      body,
    ];
    const { rowCount } = await mapDatabaseLoss(this.#context.pool.query(sql.insert, values));
    if (rowCount !== 1) {
      // Another caller owns it, so this caller must not delete it.
      this.#created = undefined;
      throw unusableReply("a new cache with the name of another one");
    }
    const usage = create(UsageSchema, {
      inputTokens: tokens,
      ...(this.#features?.hasAudioInput === true && { audioInputTokens: tokens }),
    });
    return { usage, storedTokenHours: tokenHours(tokens, seconds) };
  }

  /**
   * Records the new expiry of a cache. Of concurrent changes, each is charged for the time that it
   * adds.
   */
  async #prolong(body: Buffer, { name, tokens }: StoredCache): Promise<Change> {
    const { mount, caller } = this.#exchange;
    const figures = this.#figures(parseObject(body.toString("utf8")), body);
    const expireMs = Math.min(figures.expireMs, this.#latestMs);
    const key = [mount.config.name, caller.accountId, name];
    const seconds = await transact(this.#context.pool, async (open) => {
      const { rows } = await open.query<Pick<StoredCache, "paid_time">>(sql.lock, key);
      const [found] = rows;
      if (found === undefined) throw noSuchObject();
      await open.query(sql.update, [...key, new Date(expireMs), body]);
      return (expireMs - found.paid_time.getTime()) / 1_000;
    });
    return { usage: create(UsageSchema), storedTokenHours: tokenHours(tokens, seconds) };
  }

  /** @throws GatewayError UPSTREAM_ERROR */
  #figures(json: JsonObject | undefined, body: Buffer): NativeCacheFigures {
    const figures = json && this.#caches.figuresOf(json);
    if (figures !== undefined && body.length <= nativeKeptBytesMax) return figures;
    throw unusableReply("a cache without its tokens or times");
  }

  /** The most seconds of storage that the request can add. */
  #maxSeconds(life: NativeCacheLife | undefined): number {
    const { stored } = this.#facts;
    if (stored === undefined && life !== undefined && "ttlMs" in life) return life.ttlMs / 1_000;
    const fromMs = stored?.paid_time.getTime() ?? this.#startMs;
    return Math.max(0, (this.#latestMs - fromMs) / 1_000);
  }

  /**
   * The latest possible expiry of the cache, in milliseconds since 1970: the requested time, with a
   * tolerance for different clocks.
   */
  get #latestMs(): number {
    const life = this.#life;
    const askedMs =
      life === undefined || "ttlMs" in life
        ? this.#context.clock.now() + (life?.ttlMs ?? 0)
        : life.expireMs;
    return askedMs + cacheSlackMs;
  }

  get #found(): NativeModel {
    const { found, name } = this.#facts;
    if (found === undefined) throw noSuchModel(name);
    return found;
  }

  get #caches(): NativeCaches {
    const { caches } = this.#exchange.mount.api;
    if (caches === undefined) throw new TypeError("a vendor without prompt caches");
    return caches;
  }
}

/** The longest input of a model at a vendor, in tokens. */
function contextOf({ route: { maxContext = Number.POSITIVE_INFINITY } }: NativeModel): number {
  return maxContext;
}

/** @throws GatewayError INVALID_REQUEST if a cache would live too long, or not at all */
function checkLife(life: NativeCacheLife, nowMs: number): void {
  const ms = "ttlMs" in life ? life.ttlMs : life.expireMs - nowMs;
  const param = "ttlMs" in life ? "ttl" : "expireTime";
  if (ms <= 0) throw invalid(param, `"${param}" must be in the future`);
  if (ms <= cacheLifeMsMax) return;
  const days = cacheLifeMsMax / 86_400_000;
  throw invalid(param, `"${param}" must be at most ${days} days from now; prolong the cache later`);
}

/**
 * The storage time of a new cache in seconds: the requested duration, or the time until the
 * requested moment.
 */
function secondsOf(life: NativeCacheLife | undefined, figures: NativeCacheFigures): number {
  const { createMs, expireMs } = figures;
  const ms = life !== undefined && "ttlMs" in life ? life.ttlMs : expireMs - createMs;
  return ms / 1_000;
}

/** Whole token-hours, rounded up: so the lines of receipts are exact. */
function tokenHours(tokens: number, seconds: number): number {
  return Math.ceil((tokens * Math.max(0, seconds)) / 3_600);
}
