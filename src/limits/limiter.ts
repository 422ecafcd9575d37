/**
 * Counts requests, tokens and running calls against limits, exactly over all processes: one
 * statement decides a batch of requests under the locks of its subjects. While one batch is in
 * progress, the next one collects; there is no timer.
 */
import type { Pool } from "pg";
import { int32Max } from "../core/int32.ts";
import { withTimeout } from "../core/async.ts";
import { databaseUnavailable } from "../core/database-lost.ts";
import { openPool } from "../db/pool/open-pool.ts";
import type { DatabaseAddress } from "../db/pool/server.ts";
import type {
  LimitedRequest,
  LimitRefusal,
  LimitSubject,
  LimitUse,
  Ticket,
} from "./limited-request.ts";

export type * from "./limited-request.ts";

/** Maximum number of requests that one statement decides. */
const batchMax = 100;

/**
 * Time that ended calls wait for a request whose statement reports them. Without the wait every
 * call would cost the database two statements. Other processes see the freed capacity later by this
 * time.
 */
const endedMs = 20;

/** Time for which the last known usage of a subject shows that its limits are far away. */
const farMs = 5_000;

/** Maximum share of each limit in use that still counts as far from the limit. */
const farShare = 0.5;

/** Maximum number of subjects whose last known usage is stored. */
const knownMax = 10_000;

/** Timeout of a batch: callers get their 503 within a second. */
const answerMs = 800;

const statement = {
  name: "limit_admit",
  text: "select * from limit_admit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
  query_timeout: 2 * answerMs,
};

interface Waiting extends LimitedRequest {
  readonly resolve: (verdict: Ticket | LimitRefusal) => void;
  readonly reject: (error: unknown) => void;
}

interface TokenReturn {
  readonly subject: LimitSubject;
  readonly slice: bigint;
  readonly tokens: number;
}

interface VerdictRow {
  readonly refused_by: readonly number[] | null;
  readonly reason: readonly number[] | null;
  readonly retry_ms: readonly number[] | null;
  readonly used_requests: readonly string[];
  readonly used_tokens: readonly string[];
  readonly slice: string;
}

const reasons = ["requests", "tokens", "concurrency"] as const;

/** Opens the limiter of a process, with a separate connection: no other query delays it. */
export function openLimiter(
  url: DatabaseAddress,
  nodeId: string,
): Limiter & { close(): Promise<void> } {
  const pool = openPool(url, { max: 1, for: "callers" });
  const limiter = new Limiter({ pool, nodeId });
  const close = async (): Promise<void> => {
    await limiter.stop();
    await pool.end();
  };
  return Object.assign(limiter, { close });
}

/** The limits of a process. */
export class Limiter {
  readonly #pool: Pick<Pool, "query">;
  readonly #nodeId: string;
  #waiting: Waiting[] = [];
  #returns: TokenReturn[] = [];
  /** Subjects whose number of running calls is lower than the number in the database. */
  #ended = new Map<string, LimitSubject>();
  /** Running calls by subject, for subjects with a concurrency limit. */
  readonly #running = new Map<string, number>();
  /**
   * Subjects whose requests are used up until the stored time; no request can be admitted before
   * it.
   */
  readonly #usedUp = new Map<
    string,
    { readonly refusal: LimitRefusal; readonly untilMs: number }
  >();
  /** The last known usage of each subject, and the time of that knowledge. */
  readonly #known = new Map<string, { readonly used: LimitUse; readonly atMs: number }>();
  #sending: Promise<void> | undefined;
  #isScheduled = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param nodeId the process, as in the ledger's heartbeats: its calls count while it is alive */
  constructor({ pool, nodeId }: { readonly pool: Pick<Pool, "query">; readonly nodeId: string }) {
    this.#pool = pool;
    this.#nodeId = nodeId;
  }

  /**
   * Decides about a request.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE if the database does not answer in time: a limit that
   * cannot be checked admits no request
   */
  admit(request: LimitedRequest): Promise<Ticket | LimitRefusal> {
    const known = this.#knownRefusal(request);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...request, resolve, reject });
      this.#schedule();
    });
  }

  /**
   * Whether a request will almost certainly be admitted: recently, less than half of each limit was
   * in use. Its caller need not wait for the verdict before work that can be undone.
   */
  isFar({ subjects, tokens }: LimitedRequest): boolean {
    const sinceMs = performance.now() - farMs;
    return subjects.every(({ name, limits: { rpm, tpm, concurrency } }) => {
      const known = this.#known.get(name);
      if (known === undefined || known.atMs < sinceMs) return false;
      const { used } = known;
      const running = this.#running.get(name) ?? 0;
      return (
        used.requests < farShare * (rpm ?? Infinity) &&
        used.tokens + tokens < farShare * (tpm ?? Infinity) &&
        running < farShare * (concurrency ?? Infinity)
      );
    });
  }

  /**
   * Ends an admitted request.
   *
   * @param usedTokens the used part of its reserved tokens
   */
  end({ subjects, tokens, slice }: Ticket, usedTokens: number): void {
    for (const subject of subjects) {
      const { name, limits } = subject;
      if (limits.concurrency !== undefined) {
        this.#run(name, -1);
        this.#ended.set(name, subject);
      }
      if (limits.tpm !== undefined && usedTokens < tokens) {
        this.#returns.push({ subject, slice, tokens: tokens - usedTokens });
      }
    }
    this.#startTimer();
  }

  /** Reports ended calls to the database. Call it when no more are admitted. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#sending;
    await this.#send();
    clearTimeout(this.#timer);
  }

  #startTimer(): void {
    if (this.#ended.size + this.#returns.length === 0) return;
    this.#timer ??= setTimeout(this.#onTimer, endedMs).unref();
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#schedule();
  };

  #run(name: string, change: number): void {
    const running = (this.#running.get(name) ?? 0) + change;
    if (running > 0) this.#running.set(name, running);
    else this.#running.delete(name);
  }

  /** Saves the round trip of requests that pour in although their limit is used up. */
  #knownRefusal({ subjects }: LimitedRequest): LimitRefusal | undefined {
    if (this.#usedUp.size === 0) return undefined;
    const nowMs = performance.now();
    for (const { name, limits } of subjects) {
      const found = this.#usedUp.get(name);
      if (found === undefined) continue;
      if (found.untilMs > nowMs && found.refusal.subject.limits.rpm === limits.rpm) {
        return { ...found.refusal, retryMs: found.untilMs - nowMs };
      }
      this.#usedUp.delete(name);
    }
    return undefined;
  }

  /** Delayed, so that requests from other sockets of this turn of the event loop join the batch. */
  #schedule(): void {
    if (this.#sending !== undefined || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sending ??= this.#send().finally(() => {
        this.#sending = undefined;
        if (this.#waiting.length > 0) this.#schedule();
        this.#startTimer();
      });
    });
  }

  /** Sends a batch. Never rejects. */
  async #send(): Promise<void> {
    const requests = this.#waiting.splice(0, batchMax);
    const returns = this.#returns.splice(0);
    const ended = this.#ended;
    this.#ended = new Map();
    if (requests.length + returns.length + ended.size === 0) return;
    const subjects = subjectsOf(requests, returns, ended);
    try {
      const values = this.#values(subjects, requests, returns);
      const { rows } = await withTimeout(
        answerMs,
        this.#pool.query<VerdictRow>({ ...statement, values }),
      );
      const [row] = rows;
      if (row === undefined) throw new Error("limit_admit returned no row");
      requests.forEach((request, index) => this.#answer(request, index, { row, subjects }));
    } catch (error) {
      // The ended calls are reported again with the next batch. Unused tokens are not returned
      // again, because the failed attempt may have returned them.
      for (const [name, subject] of ended) this.#ended.set(name, subject);
      for (const { reject } of requests) reject(databaseUnavailable(error));
    }
  }

  #values(
    subjects: readonly LimitSubject[],
    requests: readonly Waiting[],
    returns: readonly TokenReturn[],
  ): unknown[] {
    const indexes = new Map(subjects.map(({ name }, index) => [name, index + 1]));
    const indexOf = (subject: LimitSubject | undefined): number =>
      subject === undefined ? 0 : (indexes.get(subject.name) ?? 0);
    return [
      this.#nodeId,
      subjects.map(({ name }) => name),
      subjects.map(({ limits }) => limits.rpm ?? null),
      subjects.map(({ limits }) => limits.tpm ?? null),
      subjects.map(({ limits }) => limits.concurrency ?? null),
      subjects.map(({ name }) => this.#running.get(name) ?? 0),
      requests.flatMap((each) => [0, 1, 2].map((place) => indexOf(each.subjects[place]))),
      requests.map(({ tokens }) => Math.min(tokens, int32Max)),
      returns.map(({ subject }) => indexOf(subject)),
      returns.map(({ slice }) => slice.toString()),
      returns.map(({ tokens }) => tokens),
    ];
  }

  #answer(
    { resolve, subjects, tokens }: Waiting,
    index: number,
    answer: { readonly row: VerdictRow; readonly subjects: readonly LimitSubject[] },
  ): void {
    const { row } = answer;
    const useOf = (subject: LimitSubject): LimitUse => {
      const place = answer.subjects.findIndex(({ name }) => name === subject.name);
      const requests = Number(row.used_requests[place] ?? 0);
      return { requests, tokens: Number(row.used_tokens[place] ?? 0) };
    };
    const subject = answer.subjects[(row.refused_by?.[index] ?? 0) - 1];
    if (subject === undefined) {
      const used = subjects.map(useOf);
      for (const { name, limits } of subjects) {
        if (limits.concurrency !== undefined) this.#run(name, 1);
      }
      this.#know(subjects, used);
      return resolve({ isAdmitted: true, subjects, tokens, slice: BigInt(row.slice), used });
    }
    const reason = reasons[(row.reason?.[index] ?? 1) - 1] ?? "requests";
    // Usage is counted in slices of 5 s, so the last slice may expire a moment after its minute.
    // Clients expect a per-minute limit to require a wait of a minute at most: SDKs ignore longer
    // waits.
    const retryMs = Math.min(row.retry_ms?.[index] ?? 1_000, windowMs);
    const used = useOf(subject);
    this.#known.delete(subject.name);
    const refusal: LimitRefusal = { isAdmitted: false, subject, reason, retryMs, used };
    if (reason === "requests") {
      this.#usedUp.set(subject.name, { refusal, untilMs: performance.now() + retryMs });
    }
    resolve(refusal);
  }

  #know(subjects: readonly LimitSubject[], used: readonly LimitUse[]): void {
    if (this.#known.size > knownMax) this.#known.clear();
    const atMs = performance.now();
    subjects.forEach(({ name }, index) => {
      this.#known.set(name, { used: used[index] ?? noUse, atMs });
    });
  }
}

/** The window of limits per minute, and the longest wait until a call fits into one. */
const windowMs = 60_000;

const noUse: LimitUse = { requests: 0, tokens: 0 };

/**
 * All subjects of a batch, sorted: every batch locks them in this order. If a subject occurs with
 * different limits, the last ones count.
 */
function subjectsOf(
  requests: readonly LimitedRequest[],
  returns: readonly TokenReturn[],
  ended: ReadonlyMap<string, LimitSubject>,
): readonly LimitSubject[] {
  const found = new Map(ended);
  for (const { subject } of returns) found.set(subject.name, subject);
  for (const { subjects } of requests) for (const each of subjects) found.set(each.name, each);
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
