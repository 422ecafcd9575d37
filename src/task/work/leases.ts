/**
 * The leases of the tasks that this process works on: renewed by heartbeats, and lost if another
 * process claimed.
 */
import type { Pool } from "pg";
import { periodic, type PeriodicJobs } from "../../core/periodic.ts";

/** $1: ids, $2: fences, $3: the lease. A lease that was released meanwhile is not renewed. */
const renewSql = `
  update task set lease_until = clock_timestamp() + $3 * interval '1 ms',
    next_time = clock_timestamp() + $3 * interval '1 ms'
  from unnest($1::uuid[], $2::int[]) as mine(id, fence)
  where task.id = mine.id and task.fence = mine.fence and task.lease_until is not null
    and (task.finish_time is null or task.is_late_charge_pending)
  returning task.id, task.cancel_requested`;

/** The lease of one task. */
export interface Lease {
  /** Aborts work that another process can repeat: the lease was lost, or this process stops. */
  readonly signal: AbortSignal;
  /**
   * Aborts work that cannot be repeated: the lease was lost, or the grace time of a stop is over.
   */
  readonly lastSignal: AbortSignal;
  /**
   * Aborts work on data that only this process has, such as a vendor's answer: the grace time is
   * over. A lost lease is reclaimed.
   */
  readonly graceSignal: AbortSignal;
  /**
   * Aborted when the client cancels the task: at once in this process, otherwise with the next
   * heartbeat.
   */
  readonly cancelled: AbortSignal;
  /**
   * Whether no other process can have the task by now: work that must not happen twice may begin.
   */
  isSafe(): boolean;
  end(): void;
}

/** Options of {@link Leases}. */
export interface LeasesOptions {
  readonly pool: Pool;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  /** Called when leases could not be renewed; the next heartbeat tries again. */
  readonly onError: (error: unknown) => void;
}

/**
 * An abort signal that is created when it is first read, and depends on no other signal.
 * `AbortSignal.any` holds weak references that are slow to collect: 100 MiB with ten thousand
 * polled tasks. Three unused signals per task were a fifth of the objects that outlived the first
 * collections.
 */
class LazySignal {
  #controller: AbortController | undefined;
  #isOver = false;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isOver) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  abort(): void {
    this.#isOver = true;
    this.#controller?.abort();
  }
}

interface HeldLease {
  readonly fence: number;
  readonly work: LazySignal;
  readonly last: LazySignal;
  readonly grace: LazySignal;
  readonly cancelled: LazySignal;
  /** On the clock of `performance.now()`. */
  untilMs: number;
}

/** Renews the leases of a process. */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #held = new Map<string, HeldLease>();
  readonly #heartbeat: PeriodicJobs;
  #isHandedOver = false;
  #isGivenUp = false;

  constructor(options: LeasesOptions) {
    const { heartbeatMs, onError } = options;
    this.#options = options;
    const run = (): Promise<void> => this.#renew([...this.#held]);
    this.#heartbeat = periodic([{ run, everyMs: heartbeatMs, firstMs: heartbeatMs, onError }]);
  }

  get size(): number {
    return this.#held.size;
  }

  start(): void {
    this.#heartbeat.start();
  }

  stop(): Promise<void> {
    return this.#heartbeat.stop();
  }

  /** Aborts work that another process can repeat, now and from now on: this process stops. */
  handOver(): void {
    this.#isHandedOver = true;
    for (const { work } of this.#held.values()) work.abort();
  }

  /** Aborts all other work: the grace time is over. */
  giveUp(): void {
    this.#isGivenUp = true;
    for (const { last, grace } of this.#held.values()) {
      last.abort();
      grace.abort();
    }
  }

  /** @param claimStartMs when the claim was sent, on the clock of `performance.now()` */
  begin(
    { id, fence }: { readonly id: string; readonly fence: number },
    claimStartMs: number,
  ): Lease {
    const { leaseMs } = this.#options;
    const work = new LazySignal();
    const last = new LazySignal();
    const cancelled = new LazySignal();
    const grace = new LazySignal();
    const held: HeldLease = {
      fence,
      work,
      last,
      grace,
      cancelled,
      untilMs: claimStartMs + leaseMs,
    };
    this.#held.set(id, held);
    if (this.#isHandedOver) work.abort();
    if (this.#isGivenUp) {
      last.abort();
      grace.abort();
    }
    return {
      get signal() {
        return work.signal;
      },
      get lastSignal() {
        return last.signal;
      },
      get graceSignal() {
        return grace.signal;
      },
      get cancelled() {
        return cancelled.signal;
      },
      // Half of the lease: a request that begins now must have left this machine before the lease
      // ends.
      isSafe: () => performance.now() < held.untilMs - leaseMs / 2,
      end: () => {
        if (this.#held.get(id) === held) this.#held.delete(id);
      },
    };
  }

  /** Aborts the `cancelled` signal of a task: its client cancels it. */
  cancel(id: string): void {
    this.#held.get(id)?.cancelled.abort();
  }

  async #renew(all: readonly (readonly [string, HeldLease])[]): Promise<void> {
    const { pool, leaseMs } = this.#options;
    if (all.length === 0) return;
    const claimStartMs = performance.now();
    const values = [all.map(([id]) => id), all.map(([, { fence }]) => fence), leaseMs];
    const { rows } = await pool.query<{ id: string; cancel_requested: boolean }>(renewSql, values);
    const renewed = new Map(rows.map((row) => [row.id, row.cancel_requested]));
    for (const [id, held] of all) {
      if (renewed.has(id)) held.untilMs = claimStartMs + leaseMs;
      else if (this.#held.get(id) === held) markLost(held);
      if (renewed.get(id) === true) held.cancelled.abort();
    }
  }
}

/** Aborts all work: another process has the task. */
function markLost(held: HeldLease): void {
  held.untilMs = -Infinity;
  held.work.abort();
  held.last.abort();
}
