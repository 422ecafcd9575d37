/** The tasks that this process works on: it tells the database that it still does. */
import type { Pool } from "pg";

/** $1: ids, $2: fences, $3: the lease. What was given back meanwhile stays so. */
const renewSql = `
  update task set lease_until = clock_timestamp() + $3 * interval '1 ms',
    next_time = clock_timestamp() + $3 * interval '1 ms'
  from unnest($1::uuid[], $2::int[]) as mine(id, fence)
  where task.id = mine.id and task.fence = mine.fence and task.lease_until is not null
    and (task.finish_time is null or task.is_trailing)
  returning task.id, task.cancel_requested`;

/** A task that this process works on. */
export interface Lease {
  /** Aborted once the task is somebody else's. */
  readonly signal: AbortSignal;
  /** Aborted once its client asks to end it: at once in this process, else with the next heartbeat. */
  readonly cancelled: AbortSignal;
  /** Whether nobody else can have it by now: what must not happen twice may begin. */
  isSafe(): boolean;
  end(): void;
}

/** What {@link Leases} needs. */
export interface LeasesOptions {
  readonly pool: Pool;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly failed: (error: unknown) => void;
}

interface Held {
  readonly fence: number;
  readonly lost: AbortController;
  readonly cancelled: AbortController;
  /** On the clock of `performance.now()`. */
  untilMs: number;
}

/** Keeps leases alive. */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  start(): void {
    const beat = (): void => void (this.#beating ??= this.#beat());
    this.#timer = setInterval(beat, this.#options.heartbeatMs);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
  }

  /** @param askedMs when the claim was sent, on the clock of `performance.now()` */
  begin({ id, fence }: { readonly id: string; readonly fence: number }, askedMs: number): Lease {
    const { leaseMs } = this.#options;
    const [lost, cancelled] = [new AbortController(), new AbortController()];
    const held: Held = { fence, lost, cancelled, untilMs: askedMs + leaseMs };
    this.#held.set(id, held);
    return {
      signal: lost.signal,
      cancelled: cancelled.signal,
      // Half of it: what begins now must have left this machine before the lease ends.
      isSafe: () => !lost.signal.aborted && performance.now() < held.untilMs - leaseMs / 2,
      end: () => {
        if (this.#held.get(id) === held) this.#held.delete(id);
      },
    };
  }

  /** Its client asks to end it. */
  cancel(id: string): void {
    this.#held.get(id)?.cancelled.abort();
  }

  async #beat(): Promise<void> {
    try {
      await this.#renew([...this.#held]);
    } catch (error) {
      this.#options.failed(error);
    } finally {
      this.#beating = undefined;
    }
  }

  async #renew(all: readonly (readonly [string, Held])[]): Promise<void> {
    const { pool, leaseMs } = this.#options;
    if (all.length === 0) return;
    const askedMs = performance.now();
    const values = [all.map(([id]) => id), all.map(([, { fence }]) => fence), leaseMs];
    const { rows } = await pool.query<{ id: string; cancel_requested: boolean }>(renewSql, values);
    const renewed = new Map(rows.map((row) => [row.id, row.cancel_requested]));
    for (const [id, held] of all) {
      if (renewed.has(id)) held.untilMs = askedMs + leaseMs;
      else if (this.#held.get(id) === held) held.lost.abort();
      if (renewed.get(id) === true) held.cancelled.abort();
    }
  }
}
