/**
 * Sends what is due. A database row is the message: a dispatcher claims it under a lease by the database's clock,
 * sends it, and writes down the result. A process that dies in between loses its lease and another one sends. So every
 * end of a task arrives at least once.
 *
 * Rejected: pg-boss 12.35.0. Each slot is a worker, and each notice wakes all of them: 500 slots made 500 statements
 * for one event, and 990 a second when idle. Its limit for a group does not know how a receiver answers, nor an account
 * beside it: with 4 for each, receivers that hang took all slots; with 1, forty events for one receiver took 5.5 s. Its
 * retries are fixed or exponential, ours a list with `retry-after`, and an open breaker would use them up. All figures:
 * docs/performance.md.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { AddressClass, AttemptOutcome } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import {
  webhookAccountMax,
  webhookAnswerBytesKept,
  webhookAnswerMs,
  webhookEndpointMax,
  webhookLeaseMs,
  webhookNodeMax,
  webhookScanMs,
  webhookSlowMs,
  webhookSuspectShare,
  webhookUnprovenShare,
} from "../core/limits.ts";
import { nilUuid } from "../core/uuid.ts";
import { LeaseLoop } from "../db/lease-loop.ts";
import { Listener } from "../db/pool/listener.ts";
import type { DatabaseAddress } from "../db/pool/server.ts";
import { GuardFailure, type GuardFailureKind } from "../http/guard-failure.ts";
import type { GuardedClient, GuardedTimes } from "../http/guarded-client.ts";
import {
  type ClaimedRow,
  claimStatement,
  type DueRow,
  recordStatements,
  recoverLost,
  returnSql,
  scanStatement,
} from "./delivery-store.ts";
import { dueChannel, originOf } from "./enqueue.ts";
import {
  classifyAttempt,
  outcomeOf,
  readRetryAfter,
  type Verdict,
  type SlotLimits,
  Slots,
} from "./schedule.ts";
import type { Secrets } from "./secrets.ts";
import { signatureHeaders, type SigningSecrets } from "./signature.ts";

/** Sends webhooks from {@link start} to {@link stop}. */
export interface Dispatcher {
  start(): Promise<void>;
  /** Takes nothing more, and waits for what is under way: one attempt at most. */
  stop(): Promise<void>;
  /** How many are being sent by this process. */
  readonly underWay: () => number;
}

/** How many receivers one page of a scan has. */
const scanPage = 500;

/** Makes a dispatcher. Every process may run one. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new RunningDispatcher(options);
}

class RunningDispatcher implements Dispatcher {
  readonly #pool: Pool;
  readonly #timings: DispatcherTimings;
  readonly #failpoint: (point: DispatchFailpoint) => void;
  readonly #slots: Slots;
  readonly #deliverer: Deliverer;
  readonly #notices: Listener;
  readonly #loop: LeaseLoop;
  /** Receivers that may have something due, with their accounts; one that was served goes to the end. */
  readonly #ready = new Map<string, string>();

  constructor(options: DispatcherOptions) {
    const { pool, url, slots, timings, warn = () => {}, failpoint = () => {} } = options;
    this.#pool = pool;
    this.#failpoint = failpoint;
    this.#timings = {
      leaseMs: webhookLeaseMs,
      scanMs: webhookScanMs,
      answerMs: webhookAnswerMs,
      ...timings,
    };
    this.#slots = new Slots({
      node: webhookNodeMax,
      account: webhookAccountMax,
      endpoint: webhookEndpointMax,
      suspectShare: webhookSuspectShare,
      unprovenShare: webhookUnprovenShare,
      slowMs: webhookSlowMs,
      ...slots,
    });
    this.#deliverer = new Deliverer({ ...options, ...this.#timings });
    this.#notices = this.#listen(url);
    this.#loop = new LeaseLoop({
      scan: () => this.#scan(),
      claim: () => this.#claimReady(),
      scanMs: this.#timings.scanMs,
      onError: (error) => warn("webhooks could not be claimed; trying again", { err: error }),
    });
  }

  underWay = (): number => this.#slots.used;

  async start(): Promise<void> {
    await this.#notices.start();
    this.#loop.start();
  }

  async stop(): Promise<void> {
    const stopped = this.#loop.stop();
    await this.#notices.close();
    await stopped;
    await this.#loop.drained();
  }

  /** Hears at once of deliveries that are due. The next scan finds what was missed while the connection was down. */
  #listen(url: DatabaseAddress): Listener {
    return new Listener({
      url,
      channel: dueChannel,
      onNotice: (payload) => {
        const [endpointId, accountId] = payload.split(" ");
        if (endpointId && accountId) this.#wake(endpointId, accountId);
      },
    });
  }

  #wake(endpointId: string, accountId: string): void {
    this.#ready.set(endpointId, accountId);
    this.#loop.wake();
  }

  /** Finds what no notice announced: retries, tasks whose earlier delivery has ended, and expired leases. */
  async #scan(): Promise<void> {
    const lost = await recoverLost(this.#pool);
    if (lost.length > 0) this.#failpoint("recover.done");
    for (const row of lost) this.#ready.set(row.endpoint_id, row.account_id);
    for (let after: string | undefined = nilUuid; after !== undefined && !this.#loop.isStopping; ) {
      const { rows }: { rows: (DueRow & { is_ready: boolean })[] } = await this.#pool.query({
        ...scanStatement,
        values: [after, scanPage],
      });
      for (const row of rows) if (row.is_ready) this.#ready.set(row.endpoint_id, row.account_id);
      after = rows.length === scanPage ? rows.at(-1)?.endpoint_id : undefined;
    }
  }

  async #claimReady(): Promise<void> {
    while (!this.#loop.isStopping && this.#ready.size > 0) {
      const plan = this.#slots.plan(this.#ready, performance.now());
      if (plan.size === 0) return;
      const accounts = new Map(this.#ready);
      // Before the claim: what becomes due from here on is a new notice.
      for (const endpointId of plan.keys()) this.#ready.delete(endpointId);
      const claimStartMs = performance.now();
      const claimed = await this.#claim(plan, accounts);
      const left = new Map(plan);
      for (const row of claimed) {
        left.set(row.endpoint_id, (left.get(row.endpoint_id) ?? 0) - 1);
        this.#send(row, claimStartMs);
      }
      // Who used all its slots may have more.
      for (const [endpointId, slots] of left) {
        if (slots <= 0) this.#ready.set(endpointId, accounts.get(endpointId) ?? "");
      }
    }
  }

  async #claim(
    plan: ReadonlyMap<string, number>,
    accounts: ReadonlyMap<string, string>,
  ): Promise<readonly ClaimedRow[]> {
    const values = [[...plan.keys()], [...plan.values()], this.#timings.leaseMs];
    try {
      const asked = this.#pool.query<ClaimedRow>({ ...claimStatement, values });
      this.#failpoint("claim.sent");
      const { rows } = await asked;
      if (rows.length > 0) this.#failpoint("claim.answered");
      return rows;
    } catch (error) {
      for (const endpointId of plan.keys()) {
        this.#ready.set(endpointId, accounts.get(endpointId) ?? "");
      }
      throw error;
    }
  }

  #send(row: ClaimedRow, claimStartMs: number): void {
    const slot = this.#slots.begin(row.endpoint_id, row.account_id, performance.now());
    const ended = (isGood: boolean): void => {
      slot.end(isGood);
      // The task may have a newer event, the receiver more that waited for the slot.
      this.#wake(row.endpoint_id, row.account_id);
    };
    this.#loop.track(this.#deliverer.deliver(row, claimStartMs).then(ended));
  }
}

// Delivers one claimed webhook: signs and sends it, classifies the result, and records it.

/** How often a failed write is retried, and the pause between, in milliseconds. */
const recordTriesMax = 12;
const recordPauseMs = 500;

/** The pause before a delivery that could not be signed is tried again, in milliseconds. */
const unsignedPauseMs = 60_000;

const states = { pending: 1, delivered: 3, failed: 4 } as const;

/** Delivers the webhooks that the dispatcher has claimed. */
class Deliverer {
  readonly #options: DispatcherOptions & DispatcherTimings;
  readonly #pool: Pool;
  readonly #failpoint: (point: DispatchFailpoint) => void;
  readonly #warn: NonNullable<DispatcherOptions["warn"]>;

  constructor(options: DispatcherOptions & DispatcherTimings) {
    this.#options = options;
    this.#pool = options.pool;
    this.#failpoint = options.failpoint ?? (() => {});
    this.#warn = options.warn ?? (() => {});
  }

  /**
   * Delivers. Never rejects.
   *
   * @param claimStartMs when the claim was sent, by `performance.now()`: the lease is no older
   * @returns whether the receiver answered as it should
   */
  async deliver(row: ClaimedRow, claimStartMs: number): Promise<boolean> {
    try {
      const secrets = await this.#secretsOf(row);
      if (secrets === undefined) {
        await this.#pool.query(returnSql, [row.id, row.attempts, unsignedPauseMs]);
        return false;
      }
      // After a pause of this process its lease is lost, or about to be: another process sends.
      if (performance.now() - claimStartMs > this.#options.leaseMs / 3) return false;
      return await this.#send(row, secrets);
    } catch (error) {
      // Its lease ends, and another attempt follows.
      this.#warn("a webhook's attempt could not be recorded", {
        deliveryId: row.id,
        err: error,
      });
      return false;
    }
  }

  async #secretsOf(row: ClaimedRow): Promise<SigningSecrets | undefined> {
    const { account_id: accountId, sealed } = row;
    const { secrets } = this.#options;
    if (sealed === null) return secrets.get(accountId);
    const opened = secrets.open(accountId, { ...row, sealed });
    if (opened === undefined) {
      this.#warn("an account's webhook secret was sealed with another master key", { accountId });
    }
    return opened;
  }

  async #send(row: ClaimedRow, secrets: SigningSecrets): Promise<boolean> {
    const { client, answerMs, random = Math.random } = this.#options;
    this.#failpoint("attempt.begun");
    const result = await tryOnce(row, { client, secrets, time: new Date(), answerMs });
    this.#failpoint("attempt.answered");
    const verdict = classifyAttempt({ ...row, ...result }, random());
    const origin = originOf(row.url);
    const isDead = await this.#record(row, { result, verdict, origin });
    this.#options.onAttempt?.({ accountId: row.account_id, origin, result, verdict, isDead });
    return result.outcome === AttemptOutcome.DELIVERED;
  }

  /** Records an attempt; retries, for an unrecorded one is sent again. Returns whether it made the receiver dead. */
  async #record(
    row: ClaimedRow,
    done: { readonly result: AttemptResult; readonly verdict: Verdict; readonly origin: string },
  ): Promise<boolean> {
    const effect = effectOf(done.result.outcome);
    const values = recordValues(row, done);
    const ofEndpoint = [row.endpoint_id, row.account_id, done.origin];
    const more = { neutral: [], success: ofEndpoint, failure: [...ofEndpoint, row.is_probe] }[
      effect
    ];
    for (let tries = 1; ; tries++) {
      try {
        const recorded = this.#pool.query<{ is_dead: boolean }>({
          ...recordStatements[effect],
          values: [...values, ...more],
        });
        this.#failpoint("record.sent");
        const { rows } = await recorded;
        this.#failpoint("record.answered");
        return rows[0]?.is_dead ?? false;
      } catch (error) {
        if (tries === recordTriesMax) throw error;
      }
      await delay(recordPauseMs);
    }
  }
}

/** How an outcome counts for the receiver's breaker. 410 concerns one address, not its whole origin. */
function effectOf(outcome: AttemptOutcome): keyof typeof recordStatements {
  if (outcome === AttemptOutcome.DELIVERED) return "success";
  return outcome === AttemptOutcome.GONE ? "neutral" : "failure";
}

function recordValues(
  row: ClaimedRow,
  { result, verdict }: { readonly result: AttemptResult; readonly verdict: Verdict },
): unknown[] {
  const { times } = result;
  const timesMs = [times.dnsMs, times.connectMs, times.tlsMs, times.firstByteMs, times.totalMs];
  return [
    row.id,
    row.attempts,
    states[verdict.state],
    verdict.state === "pending" ? verdict.pauseMs : 0,
    result.startTime.toISOString(),
    result.outcome,
    result.status,
    result.addressClass,
    ...timesMs.map((ms) => Math.round(ms)),
    result.answer,
  ];
}

/** Options of a dispatcher. */
export interface DispatcherOptions {
  readonly pool: Pool;
  /** The database's address, where notices are heard. Contains a password. */
  readonly url: DatabaseAddress;
  readonly client: GuardedClient;
  readonly secrets: Secrets;
  /** Called with every attempt that has ended, when it is written down. Default: nothing. */
  readonly onAttempt?: (finished: Finished) => void;
  /** Logs what an operator should know, without secrets. Default: nothing. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Default: those of the limits. */
  readonly slots?: Partial<SlotLimits>;
  /** In milliseconds. Default: those of the limits. */
  readonly timings?: Partial<DispatcherTimings>;
  /** From 0 to below 1; decides jitter. Default: `Math.random`. */
  readonly random?: () => number;
  /** Called at failpoints, where tests kill the process. Default: nothing. */
  readonly failpoint?: (point: DispatchFailpoint) => void;
}

/** Timings in milliseconds, explained by the limits of the same names. */
interface DispatcherTimings {
  readonly leaseMs: number;
  readonly scanMs: number;
  readonly answerMs: number;
}

/** Failpoints of sending. */
export type DispatchFailpoint =
  | "claim.sent"
  | "claim.answered"
  | "attempt.begun"
  | "attempt.answered"
  | "record.sent"
  | "record.answered"
  | "recover.done";

/** An attempt that has ended and is recorded. */
export interface Finished {
  readonly accountId: string;
  readonly origin: string;
  readonly result: AttemptResult;
  readonly verdict: Verdict;
  /** Whether this attempt made the receiver dead. */
  readonly isDead: boolean;
}

/** The message to send. */
interface Message {
  /** The delivery's id. */
  readonly id: string;
  readonly url: string;
  readonly body: Buffer;
}

/** Result of one attempt. */
interface AttemptResult {
  readonly startTime: Date;
  readonly outcome: AttemptOutcome;
  /** 0: there was no answer. */
  readonly status: number;
  readonly addressClass: AddressClass;
  readonly times: GuardedTimes;
  /** The beginning of the answer's body. */
  readonly answer: Buffer;
  /** The receiver's `retry-after`, in milliseconds; 0: none. */
  readonly retryAfterMs: number;
}

/** How to send a message. */
interface AttemptOptions {
  readonly client: GuardedClient;
  readonly secrets: SigningSecrets;
  /** The time of the attempt. */
  readonly time: Date;
  /** How long the receiver may take, in milliseconds. */
  readonly answerMs: number;
}

const outcomes: Readonly<Record<GuardFailureKind, AttemptOutcome>> = {
  blocked_address: AttemptOutcome.BLOCKED_ADDRESS,
  dns: AttemptOutcome.DNS,
  connect: AttemptOutcome.CONNECT,
  tls: AttemptOutcome.TLS,
  timeout: AttemptOutcome.TIMEOUT,
  reset: AttemptOutcome.RESET,
  too_large: AttemptOutcome.RESET,
  aborted: AttemptOutcome.LOST,
};

const addressClasses: Readonly<Record<GuardedTimes["addressClass"], AddressClass>> = {
  none: AddressClass.UNSPECIFIED,
  public_ipv4: AddressClass.PUBLIC_IPV4,
  public_ipv6: AddressClass.PUBLIC_IPV6,
  listed: AddressClass.LISTED,
  blocked: AddressClass.BLOCKED,
};

/** Sends a message once. Never rejects. */
async function tryOnce(message: Message, options: AttemptOptions): Promise<AttemptResult> {
  const { id: eventId, url, body } = message;
  const { client, secrets, time, answerMs } = options;
  const pieces: Uint8Array[] = [];
  let left = webhookAnswerBytesKept;
  const { outcome, times } = await client.send({
    method: "POST",
    url,
    headers: {
      "content-type": "application/json",
      "user-agent": "uas-gateway-webhooks",
      ...signatureHeaders({ eventId, body, time }, secrets),
    },
    body,
    headMs: answerMs,
    // The status decides: a body that is cut off cannot make the attempt a failure.
    whenCut: "cut",
    sink(bytes) {
      if (left <= 0) return;
      pieces.push(bytes.subarray(0, left));
      left -= bytes.length;
    },
  });
  const isFailure = outcome instanceof GuardFailure;
  return {
    startTime: time,
    outcome: isFailure ? outcomes[outcome.kind] : outcomeOf(outcome.status),
    status: isFailure ? 0 : outcome.status,
    addressClass: addressClasses[times.addressClass],
    times,
    answer: Buffer.concat(pieces),
    retryAfterMs: isFailure ? 0 : readRetryAfter(outcome.headers["retry-after"], time),
  };
}
