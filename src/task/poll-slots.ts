/**
 * When vendors are asked how tasks stand, so that none is asked more often than it allows: some refuse all questions of a
 * credential that asks too often, those of customers with them. Each process counts for itself.
 */

/** What {@link PollSlots} need. */
interface PollSlotsOptions {
  /** How often a vendor may be asked, per second, at least 1; `undefined`: as often as one likes. */
  readonly perSecond: (vendor: string) => number | undefined;
  /** Milliseconds since some moment. Default `performance.now`. */
  readonly clock?: () => number;
}

/** Which part of the questions is planned ahead. The rest is for news that a vendor tells by itself. */
const plannedShare = 0.8;

const secondMs = 1_000;

interface Calendar {
  /** How many questions are planned, by second. */
  readonly planned: Map<number, number>;
  /** The second that was last, and how many were asked in it. */
  second: number;
  asked: number;
}

/** The questions of all vendors. */
export class PollSlots {
  readonly #perSecond: PollSlotsOptions["perSecond"];
  readonly #clock: () => number;
  readonly #calendars = new Map<string, Calendar>();

  constructor({ perSecond, clock = () => performance.now() }: PollSlotsOptions) {
    this.#perSecond = perSecond;
    this.#clock = clock;
  }

  /** Plans a question. @returns the pause before it, in milliseconds: the given one, or longer where others come first */
  plan(vendor: string, pauseMs: number): number {
    const perSecond = this.#perSecond(vendor);
    if (perSecond === undefined) return pauseMs;
    const { planned } = this.#calendarOf(vendor);
    const room = Math.max(1, Math.floor(perSecond * plannedShare));
    const atMs = this.#clock() + pauseMs;
    let second = Math.floor(atMs / secondMs);
    while ((planned.get(second) ?? 0) >= room) second++;
    const before = planned.get(second) ?? 0;
    planned.set(second, before + 1);
    // Those of one second do not begin together.
    const slotMs = second * secondMs + (before * secondMs) / room;
    return Math.round(pauseMs + Math.max(0, slotMs - atMs));
  }

  /** Asks now, if that may be. */
  ask(vendor: string): boolean {
    const perSecond = this.#perSecond(vendor);
    if (perSecond === undefined) return true;
    const calendar = this.#calendarOf(vendor);
    if (calendar.asked >= perSecond) return false;
    calendar.asked++;
    return true;
  }

  #calendarOf(vendor: string): Calendar {
    const second = Math.floor(this.#clock() / secondMs);
    let calendar = this.#calendars.get(vendor);
    if (calendar === undefined) {
      calendar = { planned: new Map(), second, asked: 0 };
      this.#calendars.set(vendor, calendar);
    }
    if (calendar.second !== second) {
      for (const past of calendar.planned.keys()) {
        if (past < second) calendar.planned.delete(past);
      }
      calendar.second = second;
      calendar.asked = 0;
    }
    return calendar;
  }
}

/** How long to wait before a vendor is asked again. Pure. */

/** How far a pause may be from its value, so that what began together does not stay together. */
const jitter = 0.2;

/** How a pause grows. */
interface PauseScale {
  /** The first, in milliseconds. */
  readonly firstMs: number;
  /** The longest, in milliseconds, before jitter. */
  readonly longestMs: number;
}

/**
 * The pause before the next time, in milliseconds: half as long again each time.
 *
 * @param count how often it was asked before, from 0
 * @param random from 0 to below 1; decides the jitter
 */
export function growingPauseMs(
  { firstMs, longestMs }: PauseScale,
  count: number,
  random: number,
): number {
  const pause = Math.min(longestMs, firstMs * 1.5 ** Math.min(count, 60));
  return Math.round(pause * (1 + jitter * (2 * random - 1)));
}
