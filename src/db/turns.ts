/** Who uses one of a few places, and who waits for one: each lane in its order, the lanes in turns. Pure. */

/** What {@link Turns} needs. */
export interface TurnsOptions {
  /** How many places there are. */
  readonly places: number;
  /** The most places that a lane may have at once. */
  readonly share: (lane: string) => number;
}

/** Somebody who waits. */
export interface Waiter {
  readonly lane: string;
  /** When it began, in milliseconds by the caller's clock. */
  readonly sinceMs: number;
  /** It has a place now. */
  begin(): void;
  /** It gets none. */
  refuse(error: Error): void;
}

/** The places, and the lines before them. */
export class Turns {
  readonly #options: TurnsOptions;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  /** In the order of their turns. No line is empty. */
  readonly #lines = new Map<string, Waiter[]>();

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** How many of a lane wait. */
  waitingIn(lane: string): number {
    return this.#lines.get(lane)?.length ?? 0;
  }

  /** Whether nobody waits. */
  get isIdle(): boolean {
    return this.#lines.size === 0;
  }

  /** Takes a place, if the lane may have one now. Where others wait, they may not. */
  take(lane: string): boolean {
    if (!this.#mayTake(lane)) return false;
    this.#taken += 1;
    this.#takenBy.set(lane, this.#countOf(lane) + 1);
    return true;
  }

  /** Gets in line, after {@link take} has said no. */
  wait(waiter: Waiter): void {
    const line = this.#lines.get(waiter.lane);
    if (line === undefined) this.#lines.set(waiter.lane, [waiter]);
    else line.push(waiter);
  }

  /** Gives a place back: the next one begins. */
  leave(lane: string): void {
    const left = this.#countOf(lane) - 1;
    this.#taken -= 1;
    if (left === 0) this.#takenBy.delete(lane);
    else this.#takenBy.set(lane, left);
    for (const [next, line] of this.#lines) {
      if (!this.take(next)) continue;
      const waiter = line.shift();
      // Its next one comes after all other lanes.
      this.#lines.delete(next);
      if (line.length > 0) this.#lines.set(next, line);
      waiter?.begin();
      return;
    }
  }

  /** Refuses those for whom there is an error. */
  refuse(errorFor: (waiter: Waiter) => Error | undefined): void {
    for (const [lane, line] of this.#lines) {
      const refused = line.map((waiter) => ({ waiter, error: errorFor(waiter) }));
      const left = refused.filter(({ error }) => error === undefined);
      if (left.length === 0) this.#lines.delete(lane);
      else line.splice(0, line.length, ...left.map(({ waiter }) => waiter));
      for (const { waiter, error } of refused) if (error !== undefined) waiter.refuse(error);
    }
  }

  #mayTake(lane: string): boolean {
    const { places, share } = this.#options;
    return this.#taken < places && this.#countOf(lane) < share(lane);
  }

  #countOf(lane: string): number {
    return this.#takenBy.get(lane) ?? 0;
  }
}
