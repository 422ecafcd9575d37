/**
 * Sends what is due. A database row is the message: it is taken under a lease by the database's clock, sent,
 * and written down; a process that dies in between loses its lease and another one sends. So every end of a
 * task arrives at least once.
 *
 * Not pg-boss 12.35.0: each slot is a worker, and each notice wakes all of them: 500 slots made 500 statements for
 * one event, and 990 a second when idle. Its limit for a group knows nothing of how a receiver answers, nor of an
 * account beside it: with 4 for each, receivers that hang took all slots; with 1, forty events for one receiver took
 * 5.5 s. Its retries are fixed or exponential, ours a list with `retry-after`, and an open breaker would burn them.
 * All figures: docs/performance.md.
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
} from "../config/limits.ts";
import { singly } from "../core/async.ts";
import { Listener } from "../db/listener.ts";
import {
  Deliverer,
  type DispatcherOptions,
  type DispatcherTimings,
  type DispatchPoint,
} from "./deliverer.ts";
import {
  claimStatement,
  recoverLost,
  scanStatement,
  type ClaimedRow,
  type DueRow,
} from "./delivery-store.ts";
import { dueChannel } from "./enqueue.ts";
import { Slots } from "./slots.ts";

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

const firstId = "00000000-0000-0000-0000-000000000000";

/** Makes a dispatcher. Every process may run one. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new RunningDispatcher(options);
}

class RunningDispatcher implements Dispatcher {
  readonly #pool: Pool;
  readonly #timings: DispatcherTimings;
  readonly #at: (point: DispatchPoint) => void;
  readonly #slots: Slots;
  readonly #deliverer: Deliverer;
  readonly #feed: Listener;
  readonly #failed: (error: unknown) => void;
  readonly #look: ReturnType<typeof singly>;
  /** Receivers that may have something due, with their accounts; who was served goes to the end. */
  readonly #ready = new Map<string, string>();
  readonly #sending = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #claiming: Promise<void> | undefined;
  #isAgain = false;
  #isStopped = false;

  constructor(options: DispatcherOptions) {
    const { pool, url, slots, timings, warn = () => {}, at = () => {} } = options;
    this.#pool = pool;
    this.#at = at;
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
    this.#feed = createDueFeed({
      url,
      onDue: (endpointId, accountId) => this.#wake(endpointId, accountId),
    });
    this.#failed = (error) => warn("webhooks could not be taken: tried again", { err: error });
    this.#look = singly(() => this.#scan(), this.#failed);
  }

  underWay = (): number => this.#slots.used;

  async start(): Promise<void> {
    await this.#feed.start();
    this.#timer = setInterval(() => void this.#look(), this.#timings.scanMs);
    this.#timer.unref();
    void this.#look();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#feed.close();
    await this.#look.ended();
    await this.#claiming;
    await Promise.all(this.#sending);
  }

  #wake(endpointId: string, accountId: string): void {
    this.#ready.set(endpointId, accountId);
    this.#go();
  }

  /** One claim is under way at a time; what becomes ready meanwhile is the next one's. */
  #go(): void {
    if (this.#isStopped) return;
    this.#isAgain = this.#claiming !== undefined;
    if (this.#isAgain) return;
    this.#claiming = this.#claimAll()
      .catch(this.#failed)
      .finally(() => {
        this.#claiming = undefined;
        if (this.#isAgain) this.#go();
      });
  }

  /** What no notice told of: retries, tasks whose last event was sent, what dead processes left. */
  async #scan(): Promise<void> {
    const lost = await recoverLost(this.#pool);
    if (lost.length > 0) this.#at("recover.done");
    for (const row of lost) this.#ready.set(row.endpoint_id, row.account_id);
    for (let after: string | undefined = firstId; after !== undefined && !this.#isStopped; ) {
      const { rows }: { rows: (DueRow & { is_ready: boolean })[] } = await this.#pool.query({
        ...scanStatement,
        values: [after, scanPage],
      });
      for (const row of rows) if (row.is_ready) this.#ready.set(row.endpoint_id, row.account_id);
      after = rows.length === scanPage ? rows.at(-1)?.endpoint_id : undefined;
    }
    this.#go();
  }

  async #claimAll(): Promise<void> {
    while (!this.#isStopped && this.#ready.size > 0) {
      const plan = this.#slots.plan(this.#ready, performance.now());
      if (plan.size === 0) return;
      const accounts = new Map(this.#ready);
      // Before asking: what becomes due from here on is a new notice.
      for (const endpointId of plan.keys()) this.#ready.delete(endpointId);
      const askedMs = performance.now();
      const claimed = await this.#claim(plan, accounts);
      const left = new Map(plan);
      for (const row of claimed) {
        left.set(row.endpoint_id, (left.get(row.endpoint_id) ?? 0) - 1);
        this.#send(row, askedMs);
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
      this.#at("claim.sent");
      const { rows } = await asked;
      if (rows.length > 0) this.#at("claim.answered");
      return rows;
    } catch (error) {
      for (const endpointId of plan.keys()) {
        this.#ready.set(endpointId, accounts.get(endpointId) ?? "");
      }
      throw error;
    }
  }

  #send(row: ClaimedRow, askedMs: number): void {
    const slot = this.#slots.begin(row.endpoint_id, row.account_id, performance.now());
    const sending = this.#deliverer.deliver(row, askedMs).then((isGood) => {
      slot.end(isGood);
      this.#sending.delete(sending);
      // Its task may have a newer event, its receiver more that waited for the slot.
      this.#wake(row.endpoint_id, row.account_id);
    });
    this.#sending.add(sending);
  }
}

/*
 * Hears at once what has become due. What is missed while the connection is down is found by the dispatcher's
 * next scan.
 */

/** What {@link createDueFeed} needs. */
interface DueFeedOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  readonly onDue: (endpointId: string, accountId: string) => void;
}

/** Makes the feed; it hears from its start on. */
function createDueFeed({ url, onDue }: DueFeedOptions): Listener {
  return new Listener({
    url,
    channel: dueChannel,
    applicationName: "uas-webhooks-due",
    onNotice: (payload) => {
      const [endpointId, accountId] = payload.split(" ");
      if (endpointId && accountId) onDue(endpointId, accountId);
    },
  });
}
