/** Delivers one claimed webhook: signs and sends it, classifies the result, and records it. */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { AddressClass, AttemptOutcome } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { webhookAnswerBytesKept } from "../core/limits.ts";
import type { DatabaseAddress } from "../db/pool/server.ts";
import { GuardFailure, type GuardFailureKind } from "../http/guard-failure.ts";
import type { GuardedClient, GuardedTimes } from "../http/guarded-client.ts";
import { type ClaimedRow, recordStatements, returnSql } from "./delivery-store.ts";
import { originOf } from "./enqueue.ts";
import {
  classifyAttempt,
  outcomeOf,
  readRetryAfter,
  type Verdict,
  type SlotLimits,
} from "./schedule.ts";
import type { Secrets } from "./secrets.ts";
import { signatureHeaders, type SigningSecrets } from "./signature.ts";

/** Maximum number of attempts of a failed write, and the pause between them in milliseconds. */
const recordTriesMax = 12;
const recordPauseMs = 500;

/** The pause before a delivery that could not be signed is retried. */
const unsignedPauseMs = 60_000;

const states = { pending: 1, delivered: 3, failed: 4 } as const;

/** Delivers the webhooks that the dispatcher has claimed. */
export class Deliverer {
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
   * @returns whether the receiver accepted it
   */
  async deliver(row: ClaimedRow, claimStartMs: number): Promise<boolean> {
    try {
      const secrets = await this.#secretsOf(row);
      if (secrets === undefined) {
        await this.#pool.query(returnSql, [row.id, row.attempts, unsignedPauseMs]);
        return false;
      }
      // After a pause of this process its lease has expired, or is about to: another process sends.
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
    const { account_id: accountId, id: deliveryId, traceparent } = row;
    const done = { accountId, deliveryId, traceparent, origin, result, verdict, isDead };
    this.#options.onAttempt?.(done);
    return result.outcome === AttemptOutcome.DELIVERED;
  }

  /**
   * Records an attempt; retries, because an unrecorded attempt is sent again. Returns whether it
   * made the receiver dead.
   */
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

/**
 * The effect of an outcome on the receiver's breaker. 410 concerns one address, not its whole
 * origin.
 */
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
  /** The database's address, for notifications. Contains a password. */
  readonly url: DatabaseAddress;
  readonly client: GuardedClient;
  readonly secrets: Secrets;
  /** Called with every ended attempt once it is recorded. Does nothing by default. */
  readonly onAttempt?: (finished: Finished) => void;
  /** Logs a warning for operators, without secrets. Does nothing by default. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** The values of limits.ts by default. */
  readonly slots?: Partial<SlotLimits>;
  /** In milliseconds. The values of limits.ts by default. */
  readonly timings?: Partial<DispatcherTimings>;
  /** From 0 to below 1; decides jitter. `Math.random` by default. */
  readonly random?: () => number;
  /** Called at failpoints, where tests kill the process. Does nothing by default. */
  readonly failpoint?: (point: DispatchFailpoint) => void;
}

/** Timings in milliseconds, explained by the limits of the same names. */
export interface DispatcherTimings {
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
  readonly deliveryId: string;
  /** The span of the task's submit; null if that was not traced. */
  readonly traceparent: string | null;
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
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly addressClass: AddressClass;
  readonly times: GuardedTimes;
  /** The beginning of the answer's body. */
  readonly answer: Buffer;
  /** The receiver's `retry-after`; 0 if absent. */
  readonly retryAfterMs: number;
}

/** Options of an attempt. */
interface AttemptOptions {
  readonly client: GuardedClient;
  readonly secrets: SigningSecrets;
  /** The time of the attempt. */
  readonly time: Date;
  /** Maximum time the receiver may take. */
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
    // The status decides: an incomplete body cannot make the attempt a failure.
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
