/**
 * Checks API keys: from memory where that is safe, otherwise in the database.
 *
 * Cached results count only while the change feed is current, so that a key disabled anywhere is refused here
 * within a second (R-AUTH-3). A process that lost the feed queries the database every time. A result queried before
 * a change is not cached after it, since it may be older. A change of an account counts as a change of all its
 * keys. A key that expires is cached until then.
 */
import type { Pool } from "pg";
import { AccountState } from "../../gen/uas/account/v1/account_pb.ts";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { AccountEntity } from "../account/entity.ts";
import { withTimeout } from "../core/async.ts";
import type { Authenticate, KeyCaller, RefusedKey } from "../core/caller.ts";
import { databaseUnavailable, mapDatabaseLoss } from "../core/database-lost.ts";
import { ratesOf } from "../core/rate-limits.ts";
import type { RowOf } from "../db/row.ts";
import type { DatabaseAddress } from "../db/servers.ts";
import { ChangeFeed } from "./change-feed.ts";
import type { ApiKeyEntity } from "./entity.ts";
import { digestBytes, digestSecret, isSecret } from "./secret.ts";

/** Cache time of accepted keys, in milliseconds. */
const acceptedTtlMs = 30_000;

/** Cache time of refused keys, in milliseconds. */
const refusedTtlMs = 5_000;

/**
 * Cache size for accepted keys; each model in a key's list counts as one more. About 25 MB where every key has its
 * own account.
 */
const acceptedWeightMax = 50_000;

/** Cache size for refused keys. Separate, so that invented keys cannot evict real ones. */
const refusedWeightMax = 10_000;

/** Most concurrent database look-ups; more would only run into their timeout. */
const lookUpsMax = 5_000;

/** Options of {@link createAuthenticator}. */
export interface AuthenticatorOptions {
  /** For look-ups. Its connection timeout should be under a second. */
  readonly pool: Pool;
  /** URL of the same database, for the feed's own connection. Contains a password: never log it. */
  readonly url: DatabaseAddress;
  /**
   * Logs a lost feed, and presented keys that are disabled, deleted or expired: at most one line per key in 5 s.
   * Never contains a key.
   */
  readonly warn: (message: string, fields: object) => void;
  /** Counts refusals by their true reason. A text that does not look like a key is `unknown`. */
  readonly onRefused: (reason: RefusalReason) => void;
  /** A monotonic clock in milliseconds. Default: `performance.now()`. */
  readonly clock?: () => number;
}

/** Statistics of an authenticator. */
export interface AuthenticatorStats {
  /** Answers from memory. */
  readonly hits: number;
  /** Database look-ups. */
  readonly lookUps: number;
  /** Whether cached results are used. */
  readonly isCurrent: boolean;
  /** Cached accepted and refused keys. */
  readonly accepted: number;
  readonly refused: number;
}

/** Checks API keys. */
export interface Authenticator {
  /** @throws GatewayError SERVICE_UNAVAILABLE within 1 s where the database does not answer */
  readonly authenticate: Authenticate;
  /** Starts to follow changes and to write key usage times; until then nothing is cached. Never rejects. */
  start(): Promise<void>;
  /** Stops, and writes pending usage times. */
  close(): Promise<void>;
  stats(): AuthenticatorStats;
}

/** Creates an authenticator. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const checker = new KeyChecker(options);
  const feed = checker.feed;
  return {
    authenticate: (key) => checker.check(key),
    start() {
      checker.lastUse.start();
      return feed.start();
    },
    async close() {
      await Promise.all([feed.close(), checker.lastUse.close()]);
    },
    stats: () => checker.stats(),
  };
}

/** A result with its promise. The same promise is returned for every cache hit, so that hits allocate nothing. */
interface Answered {
  readonly verdict: Verdict;
  readonly answer: Promise<KeyCaller | RefusedKey | undefined>;
  /** `undefined` for refused keys. */
  readonly use: KeyUse | undefined;
}

class KeyChecker {
  readonly feed: ChangeFeed;
  readonly lastUse: LastUse;
  readonly #options: AuthenticatorOptions;
  readonly #clock: () => number;
  readonly #accepted = new VerdictCache<Answered>(acceptedWeightMax);
  readonly #refused = new VerdictCache<Answered>(refusedWeightMax);
  /** Running look-ups by digest. Concurrent requests for the same key share one. */
  readonly #underWay = new Map<string, Promise<Answered>>();
  readonly #nobody: Promise<undefined> = Promise.resolve(undefined);
  /** Counts changes: a result queried before a change is not cached after it. */
  #generation = 0;
  #hits = 0;
  #lookUps = 0;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    this.lastUse = new LastUse({ ...options, clock: this.#clock });
    this.feed = new ChangeFeed({
      ...options,
      onChange: (id) => {
        this.#accepted.forget(id);
        this.#startGeneration();
      },
      onGap: () => {
        this.#accepted.clear();
        this.#startGeneration();
      },
    });
  }

  check(key: string): Promise<KeyCaller | RefusedKey | undefined> {
    if (!isSecret(key)) {
      this.#options.onRefused("unknown");
      return this.#nobody;
    }
    const digest = digestSecret(key);
    const nowMs = this.#clock();
    if (this.feed.isCurrent(nowMs)) {
      const found = this.#accepted.get(digest, nowMs) ?? this.#refused.get(digest, nowMs);
      if (found !== undefined) {
        this.#hits += 1;
        return this.#deliver(found, nowMs);
      }
    }
    return this.#ask(digest).then((found) => this.#deliver(found, nowMs));
  }

  stats(): AuthenticatorStats {
    return {
      hits: this.#hits,
      lookUps: this.#lookUps,
      isCurrent: this.feed.isCurrent(this.#clock()),
      accepted: this.#accepted.size,
      refused: this.#refused.size,
    };
  }

  #deliver({ verdict, answer, use }: Answered, nowMs: number): Answered["answer"] {
    if (use !== undefined) this.lastUse.note(use, nowMs);
    if (verdict.kind === "refused") this.#options.onRefused(verdict.key?.reason ?? "unknown");
    return answer;
  }

  /**
   * Drops all refused keys, which are few and cheap to query again; an unknown key may be one that was just
   * created.
   */
  #startGeneration(): void {
    this.#generation += 1;
    this.#refused.clear();
    this.#underWay.clear();
  }

  #ask(digest: string): Promise<Answered> {
    const shared = this.#underWay.get(digest);
    if (shared !== undefined) return shared;
    if (this.#underWay.size >= lookUpsMax) return Promise.reject(databaseUnavailable());
    const lookup = this.#askAlone(digest).finally(() => {
      if (this.#underWay.get(digest) === lookup) this.#underWay.delete(digest);
    });
    this.#underWay.set(digest, lookup);
    return lookup;
  }

  async #askAlone(digest: string): Promise<Answered> {
    this.#lookUps += 1;
    const startedMs = this.#clock();
    const generation = this.#generation;
    const verdict = await lookUpKey(this.#options.pool, digest);
    this.#tell(verdict);
    const found = this.#answered(verdict);
    if (generation === this.#generation && this.feed.isCurrent(this.#clock())) {
      this.#remember(digest, found, startedMs);
    }
    return found;
  }

  #answered(verdict: Verdict): Answered {
    if (verdict.kind === "refused") {
      const { key } = verdict;
      const answer = key === undefined ? this.#nobody : Promise.resolve(key);
      return { verdict, answer, use: undefined };
    }
    const { caller } = verdict;
    const use = { keyId: caller.keyId, usedMs: 0, isNoted: false };
    return { verdict, answer: Promise.resolve(caller), use };
  }

  #remember(digest: string, found: Answered, askedMs: number): void {
    const { verdict } = found;
    if (verdict.kind === "accepted") {
      const { keyId, accountId, models } = verdict.caller;
      const untilMs = askedMs + Math.min(acceptedTtlMs, verdict.expiresInMs);
      const weight = 1 + (models?.size ?? 0);
      this.#accepted.set(digest, { value: found, untilMs, keyId, accountId, weight });
    } else {
      const untilMs = askedMs + refusedTtlMs;
      const nobody = { keyId: undefined, accountId: undefined };
      this.#refused.set(digest, { value: found, untilMs, ...nobody, weight: 1 });
    }
  }

  /** Reports the true reason for the audit; the caller does not learn it (R-AUTH-2). */
  #tell(verdict: Verdict): void {
    if (verdict.kind !== "refused" || verdict.key === undefined) return;
    const { keyId, reason } = verdict.key;
    this.#options.warn("refused an API key", { keyId, reason });
  }
}

/** A cached result for one digest. */
interface CachedResult<T> {
  readonly value: T;
  /** Expiry on the clock of the cache's user, in milliseconds. */
  readonly untilMs: number;
  /**
   * The key id, by which {@link VerdictCache.forget} finds the entry; the account id works too. `undefined` where
   * it cannot be found.
   */
  readonly keyId: string | undefined;
  readonly accountId: string | undefined;
  /** Its share of the cache's size. */
  readonly weight: number;
}

/** All maps hold the same entries, so that every entry can be forgotten. */
interface Generation<T> {
  readonly byDigest: Map<string, CachedResult<T>>;
  readonly digestByKeyId: Map<string, string>;
  readonly digestsByAccountId: Map<string, Set<string>>;
  weight: number;
}

/**
 * A fixed-size cache of key results in two generations. New and used entries are in the young generation; when it
 * reaches half of the cache's size it becomes the old one, and the previous old one is dropped. So a hit is one
 * look-up without writes (an LRU list would write at every hit), and entries in use survive.
 */
export class VerdictCache<T> {
  readonly #weightMax: number;
  #young: Generation<T> = emptyGeneration();
  #old: Generation<T> = emptyGeneration();

  /** @param weightMax total weight of all entries */
  constructor(weightMax: number) {
    this.#weightMax = weightMax;
  }

  /** Number of entries; those carried over count twice. */
  get size(): number {
    return this.#young.byDigest.size + this.#old.byDigest.size;
  }

  /** The cached result for a digest, unless expired. */
  get(digest: string, nowMs: number): T | undefined {
    const young = this.#young.byDigest.get(digest);
    if (young !== undefined) return nowMs < young.untilMs ? young.value : undefined;
    const old = this.#old.byDigest.get(digest);
    if (old === undefined || nowMs >= old.untilMs) return undefined;
    this.set(digest, old);
    return old.value;
  }

  /** Stores a result, replacing an existing one. */
  set(digest: string, entry: CachedResult<T>): void {
    if (this.#young.weight + entry.weight > this.#weightMax / 2) {
      this.#old = this.#young;
      this.#young = emptyGeneration();
    }
    const young = this.#young;
    young.weight += entry.weight - (young.byDigest.get(digest)?.weight ?? 0);
    young.byDigest.set(digest, entry);
    if (entry.keyId !== undefined) young.digestByKeyId.set(entry.keyId, digest);
    if (entry.accountId === undefined) return;
    const ofAccount = young.digestsByAccountId.get(entry.accountId);
    if (ofAccount === undefined) young.digestsByAccountId.set(entry.accountId, new Set([digest]));
    else ofAccount.add(digest);
  }

  /** Forgets the results of a key, or of all keys of an account. */
  forget(id: string): void {
    for (const generation of [this.#young, this.#old]) {
      const digest = generation.digestByKeyId.get(id);
      if (digest !== undefined) drop(generation, digest);
      for (const each of generation.digestsByAccountId.get(id) ?? []) drop(generation, each);
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#young = emptyGeneration();
    this.#old = emptyGeneration();
  }
}

function drop<T>(generation: Generation<T>, digest: string): void {
  const { byDigest, digestByKeyId, digestsByAccountId } = generation;
  const entry = byDigest.get(digest);
  if (entry === undefined) return;
  byDigest.delete(digest);
  generation.weight -= entry.weight;
  if (entry.keyId !== undefined) digestByKeyId.delete(entry.keyId);
  if (entry.accountId === undefined) return;
  const ofAccount = digestsByAccountId.get(entry.accountId);
  ofAccount?.delete(digest);
  if (ofAccount?.size === 0) digestsByAccountId.delete(entry.accountId);
}

function emptyGeneration<T>(): Generation<T> {
  return {
    byDigest: new Map(),
    digestByKeyId: new Map(),
    digestsByAccountId: new Map(),
    weight: 0,
  };
}

// Records when keys are used, in batches outside the calls, at most once a minute per key. Best effort: losing some
// with a killed process or an unreachable database is better than failing a call.

/** Interval of the batches, in milliseconds. */
const useWriteMs = 60_000;

/** Most keys in one batch; uses of further keys are not recorded until it is written. */
const keysMax = 50_000;

/** Ordered by id, so that two processes cannot deadlock. Times never go back. */
const writeStatement =
  "insert into key_use (key_id, use_time) " +
  "select id, clock_timestamp() - age_ms * interval '1 ms' " +
  "from unnest($1::uuid[], $2::float8[]) as used(id, age_ms) order by id " +
  "on conflict (key_id) do update set use_time = greatest(key_use.use_time, excluded.use_time)";

/** The last use of a cached key. One object per key, so that a use writes a single number. */
export interface KeyUse {
  readonly keyId: string;
  /** On the authenticator's clock, in milliseconds. */
  usedMs: number;
  /** Whether it is in the next batch already. */
  isNoted: boolean;
}

/** Options of a {@link LastUse}. */
interface LastUseOptions {
  readonly pool: Pool;
  /** A monotonic clock in milliseconds. */
  readonly clock: () => number;
  readonly warn: (message: string, fields: object) => void;
}

/** Keeps `key_use` up to date. */
export class LastUse {
  readonly #options: LastUseOptions;
  #noted = new Map<string, KeyUse>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: LastUseOptions) {
    this.#options = options;
  }

  /** Starts writing every {@link useWriteMs}. */
  start(): void {
    this.#timer ??= setInterval(() => void this.write(), useWriteMs).unref();
  }

  /** Records a use of the key. */
  note(use: KeyUse, nowMs: number): void {
    use.usedMs = nowMs;
    if (use.isNoted || this.#noted.size >= keysMax) return;
    use.isNoted = true;
    this.#noted.set(use.keyId, use);
  }

  /** Writes the pending uses, after a running write. Never rejects. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes a last batch and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.write();
  }

  async #write(): Promise<void> {
    const uses = [...this.#noted.values()];
    if (uses.length === 0) return;
    this.#noted = new Map();
    const { pool, clock, warn } = this.#options;
    const nowMs = clock();
    for (const use of uses) use.isNoted = false;
    const ages = uses.map(({ usedMs }) => nowMs - usedMs);
    try {
      await pool.query(writeStatement, [uses.map(({ keyId }) => keyId), ages]);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      warn("when keys were last used could not be written", { keys: uses.length, reason });
    }
  }
}

/** Why a key is refused. Callers never learn it (R-AUTH-2). */
type RefusalReason = "unknown" | RefusedKey["reason"];

/** The result of checking a key. */
type Verdict =
  | {
      readonly kind: "accepted";
      readonly caller: KeyCaller;
      /** Remaining life of the key in milliseconds from the query, above 0; may be `Infinity`. */
      readonly expiresInMs: number;
    }
  | {
      readonly kind: "refused";
      /** `undefined` where the key is unknown. */
      readonly key: RefusedKey | undefined;
    };

/** Timeout of a look-up in milliseconds, so that callers get 503 within 1 s where the database does not answer. */
const lookUpTimeoutMs = 900;

/** When a statement's connection is closed, in milliseconds. No caller waits for it by then. */
const giveUpMs = 2 * lookUpTimeoutMs;

/** Expiry is checked by the database clock, which all processes share. */
const statement = {
  name: "key_by_digest",
  text:
    "select k.id, k.account_id, k.models, k.state, k.spend_limit, a.discount_bp, " +
    "k.rpm, k.tpm, k.concurrency, a.rpm as account_rpm, a.tpm as account_tpm, " +
    "a.concurrency as account_concurrency, a.limit_wait_ms, " +
    "a.state as account_state, " +
    "extract(epoch from k.expire_time - clock_timestamp())::float8 * 1000 as expires_in_ms " +
    "from api_key k join account a on a.id = k.account_id where k.digest = $1",
};

type KeyRow = RowOf<
  typeof ApiKeyEntity,
  "id" | "account_id" | "models" | "state" | "spend_limit" | "rpm" | "tpm" | "concurrency"
> &
  RowOf<typeof AccountEntity, "discount_bp" | "limit_wait_ms"> & {
    readonly account_state: number;
    readonly account_rpm: number | null;
    readonly account_tpm: number | null;
    readonly account_concurrency: number | null;
    readonly expires_in_ms: number | null;
  };

/**
 * Looks a key up by its digest.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where the database does not answer in time, which is better than a wrong
 * result
 */
export async function lookUpKey(pool: Pool, digest: string): Promise<Verdict> {
  // One timeout covers waiting for a connection, opening it, and the query; the driver's own timeouts would add up.
  const query = { ...statement, values: [digestBytes(digest)], query_timeout: giveUpMs };
  const looking = withTimeout(lookUpTimeoutMs, pool.query<KeyRow>(query));
  return judge((await mapDatabaseLoss(looking)).rows[0]);
}

function judge(row: KeyRow | undefined): Verdict {
  if (row === undefined) return { kind: "refused", key: undefined };
  const reason = refusalOf(row);
  if (reason !== undefined) {
    const key = { kind: "refused", accountId: row.account_id, keyId: row.id, reason } as const;
    return { kind: "refused", key };
  }
  const caller: KeyCaller = {
    kind: "key",
    accountId: row.account_id,
    keyId: row.id,
    models: row.models ? new Set(row.models) : undefined,
    keyLimitNanos: row.spend_limit === null ? undefined : BigInt(row.spend_limit),
    ...ratesOfCaller(row),
    discountBp: row.discount_bp,
    isSuspended: row.account_state !== AccountState.ACTIVE,
  };
  return { kind: "accepted", caller, expiresInMs: row.expires_in_ms ?? Infinity };
}

/** Own limits only: most keys have none, and then their callers have no such members. */
function ratesOfCaller(row: KeyRow): Pick<KeyCaller, "keyRates" | "accountRates" | "limitWaitMs"> {
  const { account_rpm: rpm, account_tpm: tpm, account_concurrency: concurrency } = row;
  const [keyRates, accountRates] = [ratesOf(row), ratesOf({ rpm, tpm, concurrency })];
  return {
    ...(keyRates && { keyRates }),
    ...(accountRates && { accountRates }),
    ...(row.limit_wait_ms !== null && { limitWaitMs: row.limit_wait_ms }),
  };
}

function refusalOf({
  state,
  expires_in_ms: expiresInMs,
}: KeyRow): RefusedKey["reason"] | undefined {
  if (state === KeyState.DELETED) return "deleted";
  if (state !== KeyState.ENABLED) return "disabled";
  return expiresInMs !== null && expiresInMs <= 0 ? "expired" : undefined;
}
