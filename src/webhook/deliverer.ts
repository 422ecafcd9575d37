/** What happens to one delivery that this process has taken: sign, send, judge, write down. */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { AttemptOutcome } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import type { GuardedClient } from "../http/guarded-client.ts";
import { tryOnce, type AttemptResult } from "./attempt.ts";
import { recordStatements, returnSql, type ClaimedRow } from "./delivery-store.ts";
import { originOf } from "./enqueue.ts";
import { judge, type Verdict } from "./schedule.ts";
import type { Secrets } from "./secrets.ts";
import type { SigningSecrets } from "./signature.ts";
import type { SlotLimits } from "./slots.ts";

/** How often a write is tried that the database did not take, and the pause between, in milliseconds. */
const recordTriesMax = 12;
const recordPauseMs = 500;

/** When to try again what could not be signed, in milliseconds. */
const unsignedPauseMs = 60_000;

const states = { pending: 1, delivered: 3, failed: 4 } as const;

/** Delivers what the dispatcher has taken. */
export class Deliverer {
  readonly #options: DispatcherOptions & DispatcherTimings;
  readonly #pool: Pool;
  readonly #at: (point: DispatchPoint) => void;
  readonly #warn: NonNullable<DispatcherOptions["warn"]>;

  constructor(options: DispatcherOptions & DispatcherTimings) {
    this.#options = options;
    this.#pool = options.pool;
    this.#at = options.at ?? (() => {});
    this.#warn = options.warn ?? (() => {});
  }

  /**
   * Delivers. Never rejects.
   *
   * @param askedMs when the delivery was asked for, by `performance.now()`: its lease is no older
   * @returns whether the receiver answered as it should
   */
  async deliver(row: ClaimedRow, askedMs: number): Promise<boolean> {
    try {
      const secrets = await this.#secretsOf(row);
      if (secrets === undefined) {
        await this.#pool.query(returnSql, [row.id, row.attempts, unsignedPauseMs]);
        return false;
      }
      // A process that slept has lost its lease, or is about to: whoever has it now sends.
      if (performance.now() - askedMs > this.#options.leaseMs / 3) return false;
      return await this.#send(row, secrets);
    } catch (error) {
      // Its lease ends, and it is sent again.
      this.#warn("a webhook's attempt could not be written down", {
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
    const { client, answerMs, now = () => new Date(), random = Math.random } = this.#options;
    this.#at("attempt.begun");
    const result = await tryOnce(row, { client, secrets, time: now(), answerMs });
    this.#at("attempt.answered");
    const verdict = judge({ ...row, ...result }, random());
    const origin = originOf(row.url);
    const isDead = await this.#record(row, { result, verdict, origin });
    this.#options.onAttempt?.({ accountId: row.account_id, origin, result, verdict, isDead });
    return result.outcome === AttemptOutcome.DELIVERED;
  }

  /** Writes it down; patiently, for otherwise it is sent again. Returns whether the receiver is dead by it. */
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
        this.#at("record.sent");
        const { rows } = await recorded;
        this.#at("record.answered");
        return rows[0]?.is_dead ?? false;
      } catch (error) {
        if (tries === recordTriesMax) throw error;
      }
      await delay(recordPauseMs);
    }
  }
}

/** What an outcome says of the receiver. 410 speaks of one address, not of all of its origin. */
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

/* What sending needs, and how long it takes. */

/** What a dispatcher needs. */
export interface DispatcherOptions {
  readonly pool: Pool;
  /** The database's address, for a connection of its own. Contains a password. */
  readonly url: string;
  readonly client: GuardedClient;
  readonly secrets: Secrets;
  /** Told of every attempt that has ended, when it is written down. Default: nobody. */
  readonly onAttempt?: (finished: Finished) => void;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Default: those of the limits. */
  readonly slots?: Partial<SlotLimits>;
  /** In milliseconds. Default: those of the limits. */
  readonly timings?: Partial<DispatcherTimings>;
  /** The time of attempts. Default: now. */
  readonly now?: () => Date;
  /** From 0 to below 1; decides jitter. Default: `Math.random`. */
  readonly random?: () => number;
  /** Called at named points, for tests that kill the process there. Default: nothing. */
  readonly at?: (point: DispatchPoint) => void;
}

/** How long things take, in milliseconds. */
export interface DispatcherTimings {
  readonly leaseMs: number;
  readonly scanMs: number;
  readonly answerMs: number;
}

/** Where a process can die. */
export type DispatchPoint =
  | "claim.sent"
  | "claim.answered"
  | "attempt.begun"
  | "attempt.answered"
  | "record.sent"
  | "record.answered"
  | "recover.done";

/** An attempt that has ended and is written down. */
export interface Finished {
  readonly accountId: string;
  readonly origin: string;
  readonly result: AttemptResult;
  readonly verdict: Verdict;
  /** Whether the receiver was given up by this attempt. */
  readonly isDead: boolean;
}
