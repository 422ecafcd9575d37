/**
 * Checks presented API keys: in memory where that is safe, else in the database.
 *
 * What is remembered counts only while the change feed is current, so a key that was disabled anywhere is
 * refused here within a second (R-AUTH-3); a node that lost the feed asks the database every time. What was
 * asked before a change is not remembered after it: the answer may be older than the change. A change of an
 * account counts as one of all its keys. A key that expires is remembered until then.
 */
import type { Pool } from "pg";
import type { Authenticate, KeyCaller, RefusedKey } from "../core/caller.ts";
import { databaseUnavailable } from "../core/database-lost.ts";
import { ChangeFeed } from "./change-feed.ts";
import { type KeyUse, LastUse } from "./last-use.ts";
import { lookUpKey, type RefusalReason, type Verdict } from "./look-up.ts";
import { digestSecret, isSecret } from "./secret.ts";
import { VerdictCache } from "./verdict-cache.ts";

/** How long an accepted key is remembered, in milliseconds. */
const acceptedTtlMs = 30_000;

/** How long a refused key is remembered, in milliseconds. */
const refusedTtlMs = 5_000;

/** How many accepted keys are remembered; a model of a key's list counts like a key. About 25 MB where every
 * key has an account of its own. */
const acceptedWeightMax = 50_000;

/** How many refused keys are remembered: apart, so that made-up keys cannot push out the real ones. */
const refusedWeightMax = 10_000;

/** How many look-ups may be under way: more would only wait until their time is up. */
const lookUpsMax = 5_000;

/** What {@link createAuthenticator} needs. */
export interface AuthenticatorOptions {
  /** For look-ups. Its own limit for getting a connection should be under a second. */
  readonly pool: Pool;
  /** The address of the same database, for the feed's own connection. Contains a password: never logged. */
  readonly url: string;
  /**
   * Gets a line where the feed is lost, and where a disabled, deleted or expired key is presented: at most one
   * per key in 5 s. Never contains a key.
   */
  readonly warn: (message: string, fields: object) => void;
  /** Counts refusals by their true reason; a text without the form of a key is `unknown`. */
  readonly onRefused: (reason: RefusalReason) => void;
  /** The time in milliseconds, never going back. Default: `performance.now()`. */
  readonly clock?: () => number;
}

/** What an authenticator has done, and how it does. */
export interface AuthenticatorStats {
  /** Answers from memory. */
  readonly hits: number;
  /** Questions to the database. */
  readonly lookUps: number;
  /** Whether memory is used. */
  readonly isCurrent: boolean;
  /** How many accepted and refused keys are remembered. */
  readonly accepted: number;
  readonly refused: number;
}

/** Checks API keys. */
export interface Authenticator {
  /** @throws GatewayError SERVICE_UNAVAILABLE within 1 s where the database does not answer. */
  readonly authenticate: Authenticate;
  /** Begins to follow changes, and to write down when keys are used; until then nothing is remembered. Never
   * rejects. */
  start(): Promise<void>;
  /** Ends it; what is known of the keys' use is written. */
  close(): Promise<void>;
  stats(): AuthenticatorStats;
}

/** Makes an authenticator over a database. */
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

/** A verdict with its answer ready: the same promise for every hit, so that a hit makes nothing new. */
interface Answered {
  readonly verdict: Verdict;
  readonly answer: Promise<KeyCaller | RefusedKey | undefined>;
  /** `undefined`: refused. */
  readonly use: KeyUse | undefined;
}

class KeyChecker {
  readonly feed: ChangeFeed;
  readonly lastUse: LastUse;
  readonly #options: AuthenticatorOptions;
  readonly #clock: () => number;
  readonly #accepted = new VerdictCache<Answered>(acceptedWeightMax);
  readonly #refused = new VerdictCache<Answered>(refusedWeightMax);
  /** Look-ups under way, by digest: who asks the same meanwhile shares the answer. */
  readonly #underWay = new Map<string, Promise<Answered>>();
  readonly #nobody: Promise<undefined> = Promise.resolve(undefined);
  /** Counts changes: an answer that was asked for before one is not remembered after it. */
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

  /** Refused ones are few and cheap to ask again; an unknown one may be the key that was just made. */
  #startGeneration(): void {
    this.#generation += 1;
    this.#refused.clear();
    this.#underWay.clear();
  }

  #ask(digest: string): Promise<Answered> {
    const shared = this.#underWay.get(digest);
    if (shared !== undefined) return shared;
    if (this.#underWay.size >= lookUpsMax) return Promise.reject(databaseUnavailable());
    const asked = this.#askAlone(digest).finally(() => {
      if (this.#underWay.get(digest) === asked) this.#underWay.delete(digest);
    });
    this.#underWay.set(digest, asked);
    return asked;
  }

  async #askAlone(digest: string): Promise<Answered> {
    this.#lookUps += 1;
    const askedMs = this.#clock();
    const generation = this.#generation;
    const verdict = await lookUpKey(this.#options.pool, digest);
    this.#tell(verdict);
    const found = this.#answered(verdict);
    if (generation === this.#generation && this.feed.isCurrent(this.#clock())) {
      this.#remember(digest, found, askedMs);
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

  /** For the audit: the true reason, which the caller does not learn (R-AUTH-2). */
  #tell(verdict: Verdict): void {
    if (verdict.kind !== "refused" || verdict.key === undefined) return;
    const { keyId, reason } = verdict.key;
    this.#options.warn("refused an API key", { keyId, reason });
  }
}
