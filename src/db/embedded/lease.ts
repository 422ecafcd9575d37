/**
 * The lease of a data folder: which process space (container, machine) its PostgreSQL runs in. PostgreSQL's own lock
 * names a process id, which means nothing in another space: two containers that shared a folder started two servers on
 * it, and an acknowledged top-up was lost.
 *
 * Every user of the server touches the file. Within one space PostgreSQL's lock and process ids decide, at once. From
 * another space the server is adopted by its socket, which works across containers of one machine. Where nobody answers
 * there, the folder is taken over only after the file was untouched for {@link LeaseTimings.silentMs}.
 */
import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import { hostname } from "node:os";
import { processSpace } from "../../core/process-space.ts";

/** When a lease is touched, and when it counts as abandoned. */
export interface LeaseTimings {
  /** How often its users touch it, in milliseconds. Default 2,000. */
  readonly touchMs: number;
  /** How long it must be untouched, in milliseconds. Default 10,000: four late touches do no harm. */
  readonly silentMs: number;
}

/** See {@link LeaseTimings}. */
export const leaseTimings: LeaseTimings = { touchMs: 2_000, silentMs: 10_000 };

/** A lease as it was read. */
interface FoundLease {
  readonly text: string;
  readonly touchedMs: number;
}

/** The lease of one folder, as one process sees it. */
export class FolderLease {
  readonly #file: string;
  readonly #timings: LeaseTimings;
  /** The last touch that was seen, and when it was first seen by this process's own clock. */
  #seen: { readonly found: FoundLease | undefined; readonly sinceMs: number } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(file: string, timings: LeaseTimings = leaseTimings) {
    this.#file = file;
    this.#timings = timings;
  }

  /** Whether a server of this folder would run in this process's space. False where nobody owns the folder. */
  get isOurs(): boolean {
    return spaceOf(this.#read()) === processSpace;
  }

  /** How long it must be untouched before another space may take it, in milliseconds. */
  get silentMs(): number {
    return this.#timings.silentMs;
  }

  /** The host name of the owner, for messages. */
  get owner(): string {
    return this.#read()?.text.split("\n")[1] || "unknown";
  }

  /**
   * Claims the folder for this process's space. To be called again until it succeeds.
   *
   * @param isUsed whether the folder has the marks of a server: then a missing lease counts as one of another space
   * @returns `ours`: it was already; `taken`: it is now, and what the marks in it name is dead; `elsewhere`: an owner may
   * be alive there, or has not been silent for long enough
   */
  claim(isUsed: boolean): "ours" | "taken" | "elsewhere" {
    const found = this.#read();
    if (spaceOf(found) === processSpace) return "ours";
    if ((found !== undefined || isUsed) && !this.#isSilent(found)) return "elsewhere";
    if (found !== undefined && !this.#remove(found)) return "elsewhere";
    return this.#create() ? "taken" : "elsewhere";
  }

  /** Touches the lease until {@link stopTouching}. @param onStolen called where another space has taken it from ours */
  startTouching(onStolen: () => void): void {
    this.stopTouching();
    const { isOurs } = this;
    this.#timer = setInterval(() => this.#touch(isOurs, onStolen), this.#timings.touchMs);
    this.#timer.unref();
  }

  /** Ends what {@link startTouching} began. */
  stopTouching(): void {
    clearInterval(this.#timer);
  }

  /** Gives the folder back after its server has ended, so that the next owner need not wait. */
  release(): void {
    const found = this.#read();
    if (found !== undefined && spaceOf(found) === processSpace) this.#remove(found);
  }

  /** Two looks are compared, so that the clocks of other machines do not matter. */
  #isSilent(found: FoundLease | undefined): boolean {
    const nowMs = performance.now();
    const seen = this.#seen;
    const isSame = seen?.found?.text === found?.text && seen?.found?.touchedMs === found?.touchedMs;
    if (seen === undefined || !isSame) {
      this.#seen = { found, sinceMs: nowMs };
      return false;
    }
    return nowMs - seen.sinceMs >= this.#timings.silentMs;
  }

  #touch(wasOurs: boolean, onStolen: () => void): void {
    const found = this.#read();
    if (wasOurs && found !== undefined && spaceOf(found) !== processSpace) return onStolen();
    const now = new Date();
    try {
      // It was released while this process joined.
      if (wasOurs && found === undefined) this.#create();
      else fs.utimesSync(this.#file, now, now);
    } catch {
      // Its owner in another space has released it, or the disk takes nothing now: the next touch tries again.
    }
  }

  /** Returns whether this process created it: another one may be quicker. */
  #create(): boolean {
    try {
      fs.writeFileSync(this.#file, `${processSpace}\n${hostname()}\n`, { mode: 0o600, flag: "wx" });
      return true;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
      throw error;
    }
  }

  /** Removes the lease that was judged; one that was written or touched since is put back. */
  #remove(judged: FoundLease): boolean {
    const aside = `${this.#file}.${randomUUID()}`;
    try {
      fs.renameSync(this.#file, aside);
    } catch {
      return false;
    }
    const moved = readLease(aside);
    if (moved?.text === judged.text && moved.touchedMs === judged.touchedMs) {
      fs.rmSync(aside, { force: true });
      return true;
    }
    fs.renameSync(aside, this.#file);
    return false;
  }

  #read(): FoundLease | undefined {
    return readLease(this.#file);
  }
}

function readLease(file: string): FoundLease | undefined {
  try {
    return { text: fs.readFileSync(file, "utf8"), touchedMs: fs.statSync(file).mtimeMs };
  } catch {
    return undefined;
  }
}

function spaceOf(lease: FoundLease | undefined): string | undefined {
  return lease?.text.split("\n")[0];
}
