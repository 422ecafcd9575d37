/**
 * Spreads the polls of tasks over time, so that no vendor is polled more often than it allows. Some
 * vendors then refuse every request of the credential, customers' calls included. Each process
 * counts separately.
 */

interface PollSlotsOptions {
  /** Maximum number of polls of a vendor per second, at least 1; undefined for no limit. */
  readonly perSecond: (vendor: string) => number | undefined;
  /** A monotonic clock in milliseconds. `performance.now` by default. */
  readonly clock?: () => number;
}

/**
 * The share of polls that is planned ahead. The rest is for tasks that a vendor has notified about.
 */
const plannedShare = 0.8;

const secondMs = 1_000;

interface Calendar {
  /** Number of planned polls, by second. */
  readonly planned: Map<number, number>;
  /** The current second, and its number of polls so far. */
  second: number;
  asked: number;
}

/** The poll schedule of all vendors. */
export class PollSlots {
  readonly #perSecond: PollSlotsOptions["perSecond"];
  readonly #clock: () => number;
  readonly #calendars = new Map<string, Calendar>();

  constructor({ perSecond, clock = () => performance.now() }: PollSlotsOptions) {
    this.#perSecond = perSecond;
    this.#clock = clock;
  }

  /**
   * Plans a poll.
   *
   * @returns the pause before it in milliseconds: the given one, or longer if other polls are first
   */
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
    // Spread within the second.
    const slotMs = second * secondMs + (before * secondMs) / room;
    return Math.round(pauseMs + Math.max(0, slotMs - atMs));
  }

  /** Takes a poll of the current second. Returns whether there was a free one. */
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

/** The jitter of a pause, as a share of it: tasks that began together do not stay together. */
const jitter = 0.2;

/** The range of a growing pause. */
interface PauseScale {
  /** The first pause. */
  readonly firstMs: number;
  /** The longest pause before jitter. */
  readonly longestMs: number;
}

/**
 * The pause before the next attempt in milliseconds: 1.5 times the one before, with jitter.
 *
 * @param count number of attempts so far, from 0
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
