/**
 * Vendor health: the vendors that refuse the operator's key, balance or model name (R-ERR-3), as
 * seen by this process. All tasks of such a vendor would be refused. Single tasks probe it, less
 * and less often, and the operator is alerted on changes only.
 */
import type { TaskRefused, VendorFault } from "../../provider/task.ts";
import type { VendorAlarm } from "./worker-options.ts";

/** A vendor and its model name. */
export interface VendorModel {
  readonly vendor: string;
  readonly vendor_model: string;
}

/** Options of {@link VendorHealth}. */
export interface VendorHealthOptions {
  /** The pause after a number of consecutive refusals, in milliseconds. */
  readonly pause: (count: number) => number;
  /** Called with every refusal. */
  readonly onAlarm: (alarm: VendorAlarm) => void;
  /** Called when a vendor no longer refuses. */
  readonly onBack: (place: VendorModel) => void;
  /** A monotonic clock in milliseconds. `performance.now` by default. */
  readonly clock?: () => number;
}

/** The reason why a vendor gets no submits now. */
export interface VendorPause {
  readonly refused: TaskRefused;
  /** The time until the next probe; more than 0. */
  readonly waitMs: number;
}

interface Refusing {
  readonly fault: VendorFault;
  readonly refused: TaskRefused;
  readonly count: number;
  readonly untilMs: number;
  /** Whether a probe was let through since. */
  readonly isAsked: boolean;
}

/** The health of all vendors. */
export class VendorHealth {
  readonly #options: VendorHealthOptions;
  readonly #clock: () => number;
  readonly #refusing = new Map<string, Refusing>();
  /** By vendor: why it refuses polls. */
  readonly #silent = new Map<string, VendorFault>();

  constructor(options: VendorHealthOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /**
   * The reason why a vendor gets no submit now. If undefined, submit; for a refusing vendor this
   * task is the probe.
   */
  pauseOf(place: VendorModel): VendorPause | undefined {
    const nowMs = this.#clock();
    for (const key of keysOf(place)) {
      const refusing = this.#refusing.get(key);
      if (refusing === undefined) continue;
      const { refused, count, untilMs } = refusing;
      const waitMs = untilMs - nowMs;
      if (waitMs > 0) return { refused, waitMs };
      // If the probe's outcome is never reported, the next task probes.
      const nextMs = nowMs + this.#options.pause(count);
      this.#refusing.set(key, { ...refusing, isAsked: true, untilMs: nextMs });
    }
    return undefined;
  }

  /**
   * Records that the vendor refused a submit; `refused.fault` is set if the operator is at fault.
   */
  onSubmitRefused(place: VendorModel, refused: TaskRefused): void {
    const { fault } = refused;
    // A vendor without capacity is no sign of a problem with the credential.
    if (fault === undefined) return refused.isTemporary ? undefined : this.onSubmitAnswered(place);
    const key = keyOf(place, fault);
    const before = this.#refusing.get(key);
    this.#alarm(place, fault, before?.fault);
    // Submits that were sent before the first refusal add no information.
    if (before !== undefined && !before.isAsked) return;
    const count = before === undefined ? 0 : before.count + 1;
    const untilMs = this.#clock() + this.#options.pause(count);
    this.#refusing.set(key, { fault, refused, count, untilMs, isAsked: false });
  }

  /** The vendor accepted a submit, or refused it for the customer's reasons. */
  onSubmitAnswered(place: VendorModel): void {
    const ended = keysOf(place).filter((key) => this.#refusing.delete(key));
    if (ended.length > 0) this.#options.onBack(place);
  }

  /** The vendor refused a poll. */
  onPollRefused(place: VendorModel, fault: VendorFault): void {
    this.#alarm(place, fault, this.#silent.get(place.vendor));
    this.#silent.set(place.vendor, fault);
  }

  /** The vendor answered a poll. */
  onPollAnswered({ vendor }: VendorModel): void {
    this.#silent.delete(vendor);
  }

  #alarm(place: VendorModel, fault: VendorFault, before: VendorFault | undefined): void {
    const { vendor, vendor_model: model } = place;
    this.#options.onAlarm({ vendor, model, fault, isNew: before !== fault });
  }
}

/** A lack of money concerns the whole vendor; a key may be valid for other models. */
function keyOf({ vendor, vendor_model: model }: VendorModel, fault: VendorFault): string {
  return fault === "money" ? vendor : `${vendor}\0${model}`;
}

function keysOf(place: VendorModel): string[] {
  return [keyOf(place, "money"), keyOf(place, "model")];
}
