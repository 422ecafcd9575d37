/**
 * One round: processes work, a fault hits them, others clean up, the books are compared with the
 * history.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerTimings } from "../../../src/billing/ledger/ledger.ts";
import { type Checked, type Findings, noFindings, note } from "./check.ts";
import type { Child } from "./child.ts";
import { DeadHolds } from "./dead-holds.ts";
import type { Fault } from "./fault.ts";
import { createRandom, type Plan } from "./plan.ts";
import { type ChaosServer, type FragileServer, watchCrash } from "./server.ts";
import { Site } from "./site.ts";
import type { Work } from "./work.ts";

/** Options of a round. */
export interface RoundOptions {
  readonly fault: Fault;
  /** A {@link FragileServer} if the fault hits the database. */
  readonly server: ChaosServer | FragileServer;
  readonly folder: string;
  /** Opens the work of the processes. */
  readonly openWork: (site: Site) => Promise<Work>;
  readonly seed: number;
  /** Whether the timings are those of production instead of a tenth. */
  readonly isFull: boolean;
  /** Default: {@link usualPace}. */
  readonly pace?: Pace | undefined;
}

/** Amount of work of the processes that are killed at random times. */
export interface Pace {
  /** Number of concurrent calls of each. */
  readonly callers: number;
  /** Number of processes that are killed, one after the other. */
  readonly lives: number;
  /** The shortest and the longest time between the start of work and the end. */
  readonly lifeMs: readonly [least: number, most: number];
}

/** Little work: most rounds are about one moment. */
const usualPace: Pace = { callers: 6, lives: 2, lifeMs: [50, 300] };

/** Result of a round. */
export interface RoundResult extends Checked {
  readonly findings: Findings;
  /** Whether the fault came if it was planned. */
  readonly isHit: boolean;
  /**
   * Maximum time from the death of a process until its holds had ended, and from the fault until
   * nothing was open and nothing was stored.
   */
  readonly cleanMs: number;
}

/** The timings of production divided by 10; but holds may wait long, for machines can be busy. */
const shortTimings: Partial<LedgerTimings> = {
  heartbeatMs: 500,
  silentMs: 2_000,
  holdTtlMs: 90_000,
  renewMs: 6_000,
  recoveryMs: 500,
  holdWaitMs: 5_000,
};

/**
 * Maximum time for which holds and journals remain after the fault. Holds of dead processes: {@link
 * DeadHolds}. It is the same with a tenth of the timings: the work then takes a tenth, and more on
 * a machine where processes wait for a processor.
 */
const cleanLimitMs = 60_000;

/** Maximum time in which a process must reach its point. */
const pointMs = { full: 40_000, short: 10_000 };

/** Callers at once if the journal's disk is to be full: each leaves one settlement in it. */
const diskWorkers = 24;

/** Runs a round on a separate database. */
export async function runRound(options: RoundOptions): Promise<RoundResult> {
  const site = await Site.open(options.server, options.folder);
  const work = await options.openWork(site);
  const round = new Round(site, work, options);
  try {
    return await round.run();
  } finally {
    await round.close();
  }
}

class Round {
  readonly #site: Site;
  readonly #work: Work;
  readonly #options: RoundOptions;
  readonly #random: () => number;
  readonly #children: Child[] = [];
  readonly #dead: DeadHolds;

  constructor(site: Site, work: Work, options: RoundOptions) {
    this.#site = site;
    this.#work = work;
    this.#options = options;
    this.#random = createRandom(options.seed);
    const ask = (text: string, values: readonly string[]) =>
      site.pool.query<object>(text, [...values]);
    this.#dead = new DeadHolds(ask, { isAlone: !this.#isBeside() });
  }

  async run(): Promise<RoundResult> {
    const { kind } = this.#options.fault;
    if (kind === "disk") this.#site.shrinkDisk();
    const beside = this.#isBeside() ? await this.#start(2) : undefined;
    const isHit = await this.#hit();
    const cleaner = await this.#start(0);
    if (beside) await this.#stop(beside);
    const findings = noFindings();
    const startMs = performance.now();
    if (!(await this.#site.isClean(cleanLimitMs))) {
      const open = await this.#site.openHolds();
      note(findings, "stuck", `${open} holds, journal: ${this.#site.journal().join(" ")}`);
    }
    const cleanMs = Math.max(performance.now() - startMs, await this.#dead.check(findings));
    await this.#stop(cleaner);
    const checked = await this.#work.check(findings);
    return { ...checked, findings, isHit, cleanMs };
  }

  async close(): Promise<void> {
    for (const child of this.#children) await child.kill();
    this.#dead.close();
    await this.#work.close();
    await this.#site.close();
  }

  /**
   * In every second round, and in each with the timings of production, another process works during
   * the fault. A frozen process needs it. If the process at the point must find what a dead one
   * left, no other process may find it first.
   */
  #isBeside(): boolean {
    const { fault, seed, isFull } = this.#options;
    if (fault.kind === "frozen") return true;
    if (fault.name.startsWith("recovery.") || fault.name === "journal.replayed") return false;
    return isFull || seed % 2 === 0;
  }

  /** Lets the fault happen. Returns whether it did if it was planned. */
  #hit(): Promise<boolean> {
    const { fault } = this.#options;
    if (fault.kind === "point") return this.#hitPoint(fault.name);
    if (fault.kind === "random") return this.#hitAnyTime();
    if (fault.kind === "frozen") return this.#freeze();
    if (fault.kind === "stalled") return this.#stall();
    if (fault.kind === "disk") return this.#fillDisk();
    return this.#hitDatabase(fault.kind);
  }

  async #hitPoint(point: string): Promise<boolean> {
    const [operation] = point.split(".");
    // Recovery and replay need the work of another process.
    if (operation === "recovery") await this.#leaveHolds();
    if (point === "journal.replayed") await this.#leaveJournal();
    const child = await this.#start(6, { crash: { point, hit: this.#chooseHit(point) } });
    const ended = child.ended.then(() => true);
    const isPlain = operation !== "journal";
    for (const end = performance.now() + this.#pointMs(); performance.now() < end; ) {
      if (await Promise.race([ended, sleep(this.#from(100, 400), false)])) return true;
      // A journal is written while the database is unreachable, and emptied afterwards.
      if (isPlain) continue;
      this.#site.takeAway();
      const isOver = await Promise.race([ended, sleep(this.#from(100, 400), false)]);
      this.#site.giveBack();
      // Time to connect again, and to work.
      if (isOver || (await Promise.race([ended, sleep(400, false)]))) return true;
    }
    await child.kill();
    return false;
  }

  /**
   * Returns how often the process passes the point before it ends. A point that occurs once ends it
   * at once.
   */
  #chooseHit(point: string): number {
    const [operation = ""] = point.split(".");
    if (operation === "recovery" || point === "journal.replayed") return 1;
    const isRare = operation === "journal" || operation === "heartbeat";
    return this.#from(1, isRare ? 2 : this.#work.passesMax);
  }

  async #hitAnyTime(): Promise<boolean> {
    const { pace = usualPace } = this.#options;
    let isHit = true;
    for (let lives = pace.lives; lives > 0; lives--) {
      if (!(await this.#leaveHolds(pace))) isHit = false;
    }
    return isHit;
  }

  /**
   * Works for a while and is killed; again, if that was between its calls: then nothing is left to
   * be found. Returns whether holds were left.
   */
  async #leaveHolds({ callers, lifeMs } = usualPace): Promise<boolean> {
    const end = performance.now() + this.#pointMs();
    do {
      const child = await this.#start(callers);
      await sleep(this.#from(...lifeMs));
      await child.kill();
      if (await this.#hasOpenHolds()) return true;
    } while (performance.now() < end);
    return false;
  }

  /** Whether calls are under way: else a fault hits nothing. */
  async #hasOpenHolds(): Promise<boolean> {
    return ((await this.#site.openHolds()) ?? 0) > 0;
  }

  /** Works for a while, loses the database, and is killed. */
  async #leaveJournal(): Promise<void> {
    const child = await this.#start(usualPace.callers);
    await sleep(this.#from(...usualPace.lifeMs));
    await this.#fillJournal();
    await child.kill();
    this.#site.giveBack();
  }

  /** Takes the database away; again, as long as nothing was being settled when it went. */
  async #fillJournal(): Promise<void> {
    while (this.#site.journal().length === 0) {
      this.#site.giveBack();
      await sleep(this.#from(100, 400));
      this.#site.takeAway();
      await sleep(100);
    }
  }

  async #freeze(): Promise<boolean> {
    const child = await this.#start(6);
    await sleep(this.#from(50, 300));
    child.signal("SIGSTOP");
    // The others settle its calls for it first: else there would be nothing to correct.
    const isLeft = await this.#site.isLeft(3 * this.#pointMs());
    child.signal("SIGCONT");
    await sleep(this.#from(50, 300));
    await this.#stop(child);
    return isLeft;
  }

  /**
   * The database keeps its connections open and does not answer, for longer than any call waits.
   */
  async #stall(): Promise<boolean> {
    const child = await this.#start(6);
    let isHit = false;
    for (let times = 2; times > 0; times--) {
      await sleep(this.#from(50, 300));
      this.#site.proxy.hang();
      await sleep(this.#from(1_500, 4_000));
      // Calls of before are still under way: their settlements get no answer.
      if (await this.#hasOpenHolds()) isHit = true;
      this.#site.proxy.resume();
    }
    await sleep(this.#from(50, 300));
    if (this.#random() < 0.5) await child.kill();
    else await this.#stop(child);
    return isHit;
  }

  /** While the database is unreachable, settlements arrive that exceed the journal's disk. */
  async #fillDisk(): Promise<boolean> {
    const child = await this.#start(diskWorkers);
    const end = performance.now() + this.#pointMs();
    let isHit = false;
    while (!isHit && performance.now() < end) {
      this.#site.giveBack();
      await sleep(this.#from(100, 400));
      this.#site.takeAway();
      await sleep(this.#from(300, 600));
      isHit = this.#site.isDiskFull();
    }
    // Entries that the disk refused wait in memory, and were not acknowledged.
    const isKilled = this.#random() < 0.5;
    if (isKilled) await child.kill();
    this.#site.giveBack();
    if (!isKilled) await this.#stop(child);
    return isHit;
  }

  async #hitDatabase(kind: "backend" | "server"): Promise<boolean> {
    const server = this.#options.server as FragileServer;
    const child = await this.#start(6);
    let isHit = true;
    for (let times = 2; times > 0; times--) {
      await sleep(this.#from(50, 300));
      const watch = await watchCrash(this.#site.directUrl);
      if (kind === "backend") await server.killBackend(this.#site.database);
      else await server.stopNow();
      const end = performance.now() + this.#pointMs();
      while (!watch.hasCrashed() && performance.now() < end) await sleep(5);
      if (!watch.hasCrashed()) isHit = false;
      await watch.close();
      while ((await this.#site.openHolds()) === undefined) await sleep(20);
    }
    // Half of the processes live on; the others go while the database has hardly come back.
    if (this.#random() < 0.5) await child.kill();
    else await this.#stop(child);
    return isHit;
  }

  async #start(workers: number, more: Pick<Plan, "crash"> = {}): Promise<Child> {
    const { isFull, fault } = this.#options;
    const timings = {
      ...(isFull ? {} : shortTimings),
      // Others must not seem silent too on a machine that is busy for a second.
      ...(fault.kind === "frozen" && !isFull ? { silentMs: 4_000 } : {}),
    };
    const seed = this.#from(0, 2 ** 31);
    const journal = this.#site.journals.assign();
    const child = await this.#work.start({ workers, seed, timings, isFull, journal, ...more });
    this.#children.push(child);
    this.#dead.onStarted();
    void child.ended.then((isInOrder) => {
      this.#site.journals.release(journal);
      if (!isInOrder) this.#dead.add(child.pid);
    });
    return child;
  }

  async #stop(child: Child): Promise<void> {
    if (!(await child.stop())) throw new Error("a process did not end in good order");
  }

  #pointMs(): number {
    return this.#options.isFull ? pointMs.full : pointMs.short;
  }

  /** A whole number of `min` to `max`. */
  #from(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }
}
