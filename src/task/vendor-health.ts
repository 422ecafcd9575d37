/**
 * Which vendors refuse the operator's own key, money or model name (R-ERR-3), as this process knows. Every task of such
 * a vendor would be refused: one after the other asks whether that is over, less and less often, and the operator is
 * told of changes only.
 */
import type { TaskRefused } from "../vendor/task.ts";
import type { VendorFault } from "../vendor/vendor.ts";
import type { VendorAlarm } from "./worker-options.ts";

/** Where a task goes. */
export interface Place {
  readonly vendor: string;
  readonly vendor_model: string;
}

/** What {@link Standings} need. */
export interface StandingsOptions {
  /** The pause after so many refusals in a row, in milliseconds. */
  readonly pause: (count: number) => number;
  /** Told of every refusal. */
  readonly onAlarm: (alarm: VendorAlarm) => void;
  /** Told when a vendor no longer refuses. */
  readonly onBack: (place: Place) => void;
  /** Milliseconds since some moment. Default `performance.now`. */
  readonly clock?: () => number;
}

/** Why a vendor is not asked now. */
export interface Paused {
  readonly refused: TaskRefused;
  /** When it makes sense to look again, in milliseconds from now; more than 0. */
  readonly waitMs: number;
}

interface Refusing {
  readonly fault: VendorFault;
  readonly refused: TaskRefused;
  readonly count: number;
  readonly untilMs: number;
  /** Whether a task has been let through since. */
  readonly isAsked: boolean;
}

/** How vendors stand. */
export class Standings {
  readonly #options: StandingsOptions;
  readonly #clock: () => number;
  readonly #refusing = new Map<string, Refusing>();
  /** What vendors refuse to tell of tasks that they have. */
  readonly #silent = new Map<string, VendorFault>();

  constructor(options: StandingsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /** Why a vendor is not to be asked now. `undefined`: it is; where it has refused before, by this task alone. */
  pausedBy(place: Place): Paused | undefined {
    const nowMs = this.#clock();
    for (const key of keysOf(place)) {
      const refusing = this.#refusing.get(key);
      if (refusing === undefined) continue;
      const { refused, count, untilMs } = refusing;
      const waitMs = untilMs - nowMs;
      if (waitMs > 0) return { refused, waitMs };
      // Where nobody hears what came of it, the next one asks.
      const nextMs = nowMs + this.#options.pause(count);
      this.#refusing.set(key, { ...refusing, isAsked: true, untilMs: nextMs });
    }
    return undefined;
  }

  /** The vendor has refused; with a fault, it is the operator's. */
  refused(place: Place, refused: TaskRefused): void {
    const { fault } = refused;
    // Who has no room says nothing of its opinion of us.
    if (fault === undefined) return refused.isPassing ? undefined : this.answered(place);
    const key = keyOf(place, fault);
    const before = this.#refusing.get(key);
    this.#alarm(place, fault, before?.fault);
    // Those that were asked before the first refusal was known say nothing new.
    if (before !== undefined && !before.isAsked) return;
    const count = before === undefined ? 0 : before.count + 1;
    const untilMs = this.#clock() + this.#options.pause(count);
    this.#refusing.set(key, { fault, refused, count, untilMs, isAsked: false });
  }

  /** The vendor deals with tasks. */
  answered(place: Place): void {
    const ended = keysOf(place).filter((key) => this.#refusing.delete(key));
    if (ended.length > 0) this.#options.onBack(place);
  }

  /** The vendor refuses to tell of a task that it has. */
  untold(place: Place, fault: VendorFault): void {
    this.#alarm(place, fault, this.#silent.get(place.vendor));
    this.#silent.set(place.vendor, fault);
  }

  /** The vendor has told of a task. */
  told({ vendor }: Place): void {
    this.#silent.delete(vendor);
  }

  #alarm(place: Place, fault: VendorFault, before: VendorFault | undefined): void {
    const { vendor, vendor_model: model } = place;
    this.#options.onAlarm({ vendor, model, fault, isNew: before !== fault });
  }
}

/** Money is the vendor's matter; a key may be good for other models. */
function keyOf({ vendor, vendor_model: model }: Place, fault: VendorFault): string {
  return fault === "money" ? vendor : `${vendor}\0${model}`;
}

function keysOf(place: Place): string[] {
  return [keyOf(place, "money"), keyOf(place, "model")];
}
