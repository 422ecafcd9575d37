/** Medians of measurements, and of ratios between measurements of the same round. */
import type { Measurement } from "./measure.ts";

/** The middle of the values; NaN where there is none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(at)] ?? Number.NaN) + (sorted[Math.ceil(at)] ?? Number.NaN)) / 2;
}

/** The middle measurement of each column. */
export function medianOf(measurements: readonly Measurement[]): Measurement {
  const middle = (pick: (measurement: Measurement) => number): number =>
    median(measurements.map(pick));
  return {
    perSecond: middle(({ perSecond }) => perSecond),
    cpuMicros: middle(({ cpuMicros }) => cpuMicros),
    databaseMicros: middle(({ databaseMicros }) => databaseMicros),
    switches: middle(({ switches }) => switches),
    refusals: middle(({ refusals }) => refusals),
    latency: {
      p50: middle(({ latency }) => latency.p50),
      p99: middle(({ latency }) => latency.p99),
    },
  };
}

/** A ratio between two contestants. */
export interface Ratio {
  /** The median over all rounds of the ratio within a round. */
  readonly median: number;
  readonly least: number;
  readonly most: number;
  /** The least of all dividends over the least of all divisors: other work on the machine only ever adds CPU time, so the
   * quietest turns come closest to what the code takes. */
  readonly quietest: number;
}

/** Divides round by round: whatever else the machine does in a round meets both sides. */
export function ratioOf(dividends: readonly number[], divisors: readonly number[]): Ratio {
  const ratios = dividends.map((dividend, round) => dividend / (divisors[round] ?? Number.NaN));
  return {
    median: median(ratios),
    least: Math.min(...ratios),
    most: Math.max(...ratios),
    quietest: Math.min(...dividends) / Math.min(...divisors),
  };
}
