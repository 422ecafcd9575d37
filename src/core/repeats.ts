/** Bounds events that a client may repeat without end, so that they fill neither log nor disk. */

/** Options of {@link Repeats}. */
export interface RepeatsOptions<First> {
  /** The number of events of each kind that pass in a window. */
  readonly max: number;
  readonly windowMs: number;
  /** Kinds to count in a window. Events of further kinds do not pass, and are counted together. */
  readonly kindsMax: number;
  /** Called at the end of a window, once for each kind of which events did not pass. */
  readonly onEnd: (left: Left<First>) => void;
}

/** The events of a kind that did not pass. */
export interface Left<First> {
  readonly count: number;
  /** The first of them. Undefined for the kinds above the maximum. */
  readonly first: First | undefined;
}

/** The events of one kind in a window. */
interface Kind<First> {
  passed: number;
  left: number;
  first: First | undefined;
}

/**
 * Lets the first events of each kind pass, and counts the rest. Windows begin with their first
 * event.
 */
export class Repeats<First> {
  readonly #options: RepeatsOptions<First>;
  #kinds = new Map<string, Kind<First>>();
  #otherKinds = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RepeatsOptions<First>) {
    this.#options = options;
  }

  /**
   * Counts an event. @param describe describes the first event that does not pass. @returns whether
   * it passes
   */
  passes(kind: string, describe: () => First): boolean {
    const { max, windowMs, kindsMax } = this.#options;
    this.#timer ??= setTimeout(() => this.end(), windowMs).unref();
    let counted = this.#kinds.get(kind);
    if (counted === undefined) {
      if (this.#kinds.size >= kindsMax) {
        this.#otherKinds++;
        return false;
      }
      counted = { passed: 0, left: 0, first: undefined };
      this.#kinds.set(kind, counted);
    }
    if (counted.passed < max) {
      counted.passed++;
      return true;
    }
    counted.first ??= describe();
    counted.left++;
    return false;
  }

  /** Ends the current window. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [kinds, otherKinds] = [this.#kinds, this.#otherKinds];
    this.#kinds = new Map();
    this.#otherKinds = 0;
    const { onEnd } = this.#options;
    for (const { left, first } of kinds.values()) if (left > 0) onEnd({ count: left, first });
    if (otherKinds > 0) onEnd({ count: otherKinds, first: undefined });
  }
}
