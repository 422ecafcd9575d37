/** Medians, and ratios between measurements of the same round. */

/** The middle of the values; NaN if there is none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(at)] ?? Number.NaN) + (sorted[Math.ceil(at)] ?? Number.NaN)) / 2;
}

/** A ratio between two contestants. */
export interface Ratio {
  /** The median over all rounds of the ratio within a round. */
  readonly median: number;
  readonly least: number;
  readonly most: number;
  /**
   * The least of all dividends over the least of all divisors: other work on the machine only adds
   * CPU time.
   */
  readonly quietest: number;
}

/** Divides round by round, because other work on the machine in a round affects both sides. */
export function ratioOf(dividends: readonly number[], divisors: readonly number[]): Ratio {
  const ratios = dividends.map((dividend, round) => dividend / (divisors[round] ?? Number.NaN));
  return {
    median: median(ratios),
    least: Math.min(...ratios),
    most: Math.max(...ratios),
    quietest: Math.min(...dividends) / Math.min(...divisors),
  };
}
