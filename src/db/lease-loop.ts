/**
 * The loop of workers that claim database rows under a lease. Notifications and a timer wake it. It
 * claims until no claimable row remains, one claim at a time, and tracks the work on claimed rows
 * until it ends. Tasks and webhooks implement the claim, and the renewal or return of a lease,
 * differently.
 */
import { singleFlight } from "../core/async.ts";

/** The callbacks and times of a {@link LeaseLoop}. */
export interface LeaseLoopOptions {
  /**
   * Claims rows and starts the work on them. Calls {@link LeaseLoop.wake} if more rows may be
   * claimable.
   */
  readonly claim: () => Promise<void>;
  /** Interval at which the loop checks for rows without a notification. */
  readonly scanMs: number;
  /**
   * Prepares a claim that the timer starts, for example by recovering expired leases. Does nothing
   * by default.
   */
  readonly scan?: () => Promise<void>;
  /** Called with each failure of a scan or a claim; the timer tries again. */
  readonly onError: (error: unknown) => void;
}

/** Claims rows from {@link start} to {@link stop}. */
export class LeaseLoop {
  readonly #options: LeaseLoopOptions;
  readonly #claims: ReturnType<typeof singleFlight>;
  readonly #scans: ReturnType<typeof singleFlight>;
  readonly #working = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #isWoken = false;
  #isStopping = false;

  constructor(options: LeaseLoopOptions) {
    this.#options = options;
    const { onError, scan } = options;
    this.#claims = singleFlight(() => this.#claimAll(), onError);
    this.#scans = singleFlight(async () => {
      await scan?.();
      this.wake();
    }, onError);
  }

  /** Whether {@link stop} was called: a claim in progress claims no more. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Starts the timer, with a first scan in the background. */
  start(): void {
    this.#timer = setInterval(() => void this.#scans(), this.#options.scanMs);
    this.#timer.unref();
    void this.#scans();
  }

  /**
   * Claims soon. Another claim follows one in progress, which may have missed the new rows. Cheap,
   * never fails.
   */
  wake(): void {
    if (this.#isStopping) return;
    this.#isWoken = true;
    void this.#claims();
  }

  /** Tracks the work on a claimed row, which must not reject: {@link drained} waits for it. */
  track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#working.delete(tracked));
    this.#working.add(tracked);
  }

  /**
   * Claims no further rows, and waits for the claim in progress. Work on claimed rows continues:
   * see {@link drained}.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    await this.#scans.ended();
    await this.#claims.ended();
  }

  /** Resolves when the work on all claimed rows has ended. */
  async drained(): Promise<void> {
    await Promise.all(this.#working);
  }

  async #claimAll(): Promise<void> {
    while (this.#isWoken && !this.#isStopping) {
      this.#isWoken = false;
      await this.#options.claim().catch(this.#options.onError);
    }
  }
}
