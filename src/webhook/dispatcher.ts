/**
 * Sends due deliveries. A database row is the message: a dispatcher claims it under a lease by the
 * database's clock, sends it, and records the result. If a process dies in between, its lease
 * expires and another process sends. So every end of a task is delivered at least once.
 *
 * Rejected: pg-boss 12.35.0. Each slot is a worker, and each notification wakes all of them: 500
 * slots made 500 statements for one event, and 990 a second when idle. Its limit for a group
 * considers neither a receiver's health nor the account. With 4 for each, receivers that hang used
 * all slots; with 1, forty events for one receiver took 5.5 s. Its retries are fixed or
 * exponential; here they are a list with `retry-after`, and an open breaker would use up its
 * retries. All figures: docs/adr/0003-rows-instead-of-pg-boss.md.
 */
import type { Pool } from "pg";
import {
  webhookAccountMax,
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
import {
  type ClaimedRow,
  claimStatement,
  type DueRow,
  recoverLost,
  scanStatement,
} from "./delivery-store.ts";
import { dueChannel } from "./enqueue.ts";
import { Slots } from "./schedule.ts";
import {
  type DispatcherOptions,
  type DispatcherTimings,
  type DispatchFailpoint,
  Deliverer,
} from "./delivery.ts";

/** Sends webhooks from {@link start} to {@link stop}. */
export interface Dispatcher {
  start(): Promise<void>;
  /** Claims no more deliveries, and waits for those in progress: one attempt at most. */
  stop(): Promise<void>;
  /** Number of deliveries that this process is sending. */
  readonly underWay: () => number;
}

/** Number of receivers on one page of a scan. */
const scanPage = 500;

/** Creates a dispatcher. Every process may run one. */
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
  /**
   * Receivers that may have due deliveries, with their accounts; a served receiver moves to the
   * end.
   */
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

  /**
   * Receives notifications of due deliveries at once. The next scan finds those that were missed
   * while the connection was down.
   */
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

  /**
   * Finds due deliveries without a notification: retries, tasks whose earlier delivery has ended,
   * and expired leases.
   */
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
      // Before the claim: later due deliveries cause another notification.
      for (const endpointId of plan.keys()) this.#ready.delete(endpointId);
      const claimStartMs = performance.now();
      const claimed = await this.#claim(plan, accounts);
      const left = new Map(plan);
      for (const row of claimed) {
        left.set(row.endpoint_id, (left.get(row.endpoint_id) ?? 0) - 1);
        this.#send(row, claimStartMs);
      }
      // A receiver that used all its slots may have more due deliveries.
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
      // The task may have a newer event, and the receiver more deliveries that waited for the slot.
      this.#wake(row.endpoint_id, row.account_id);
    };
    this.#loop.track(this.#deliverer.deliver(row, claimStartMs).then(ended));
  }
}
