/**
 * Checks API keys: from memory if that is safe, otherwise in the database.
 *
 * Cached results are used only while the change feed is current, so that a key disabled anywhere is
 * refused here within a second (R-AUTH-3). A process that lost the feed queries the database every
 * time. A result queried before a change is not cached after it, since it may be older. A change of
 * an account counts as a change of all its keys. A key with an expiry is cached until then.
 */
import type { Pool } from "pg";
import type { Authenticate, KeyCaller, RefusedKey } from "../core/caller.ts";
import { databaseUnavailable } from "../core/database-lost.ts";
import type { DatabaseAddress } from "../db/pool/server.ts";
import { ChangeFeed } from "./change-feed.ts";
import { type KeyUse, LastUse } from "./last-use.ts";
import { lookUpKey, type Verdict } from "./look-up.ts";
import { digestSecret, isSecret } from "./secret.ts";
import { VerdictCache } from "./verdict-cache.ts";

/** Cache time of accepted keys. */
const acceptedTtlMs = 30_000;

/** Cache time of refused keys. */
const refusedTtlMs = 5_000;

/**
 * Cache size for accepted keys; each model in a key's list counts as one more. About 25 MB if every
 * key has a separate account.
 */
const acceptedWeightMax = 50_000;

/** Cache size for refused keys. Separate, so that invented keys cannot evict real ones. */
const refusedWeightMax = 10_000;

/** Maximum number of concurrent database look-ups; more would only reach their timeout. */
const lookUpsMax = 5_000;

/** The reason why a key is refused. Callers never receive it (R-AUTH-2). */
type RefusalReason = "unknown" | RefusedKey["reason"];

/** Options of {@link createAuthenticator}. */
export interface AuthenticatorOptions {
  /** For look-ups. Its connection timeout should be under a second. */
  readonly pool: Pool;
  /** URL of the same database, for the feed's connection. Contains a password: never log it. */
  readonly url: DatabaseAddress;
  /**
   * Logs a lost feed, and presented keys that are disabled, deleted or expired: at most one line
   * per key in 5 s. Never contains a key.
   */
  readonly warn: (message: string, fields: object) => void;
  /** Counts refusals by their true reason. A text that does not look like a key is `unknown`. */
  readonly onRefused: (reason: RefusalReason) => void;
  /** A monotonic clock in milliseconds. `performance.now()` by default. */
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
  /** @throws GatewayError SERVICE_UNAVAILABLE within 1 s if the database does not answer */
  readonly authenticate: Authenticate;
  /**
   * Starts to follow changes and to write key usage times; until then nothing is cached. Never
   * rejects.
   */
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

/**
 * A result with its promise. The same promise is returned for every cache hit, so that hits
 * allocate nothing.
 */
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
   * Drops all refused keys, which are few and cheap to query again; an unknown key may have just
   * been created.
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

  /** Reports the true reason for the audit; the caller does not receive it (R-AUTH-2). */
  #tell(verdict: Verdict): void {
    if (verdict.kind !== "refused" || verdict.key === undefined) return;
    const { keyId, reason } = verdict.key;
    this.#options.warn("refused an API key", { keyId, reason });
  }
}
