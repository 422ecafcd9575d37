/** Counts attempts of a route or credential: outcomes, and times to the first content. */

/** Upper bounds of the times to first content, in milliseconds: each 1.5 times the one before, from 10 ms to 20 min. */
export const latencyBoundsMs: readonly number[] = Array.from({ length: 30 }, (_, index) =>
  Math.round(10 * 1.5 ** index),
);

/** The attempts in a span of time. */
export interface AttemptCounts {
  attempts: number;
  failures: number;
  /** Successes by {@link latencyBoundsMs}; one more for longer ones. */
  latencies: number[];
}

/** The last failure. */
export interface LastFailure {
  /** In milliseconds since 1970. */
  readonly atMs: number;
  /** The label of metrics, or a text for operators, without any text of the vendor. */
  readonly what: string;
}

/** Counts of the current minute, and the last outcomes of this process. */
export class HealthCounts {
  lastFailure: LastFailure | undefined;
  lastSuccess: { readonly atMs: number; readonly durationMs: number } | undefined;
  /** Of the minute since the last {@link restart}. */
  counts = emptyCounts();

  answered(durationMs: number): void {
    const { counts } = this;
    counts.attempts++;
    const bucket = bucketOf(durationMs);
    counts.latencies[bucket] = (counts.latencies[bucket] ?? 0) + 1;
    this.lastSuccess = { atMs: Date.now(), durationMs };
  }

  failed(what: string): void {
    this.counts.attempts++;
    this.counts.failures++;
    this.lastFailure = { atMs: Date.now(), what };
  }

  /** Begins another minute. */
  restart(): void {
    if (this.counts.attempts > 0) this.counts = emptyCounts();
  }
}

export function emptyCounts(): AttemptCounts {
  return {
    attempts: 0,
    failures: 0,
    latencies: Array.from({ length: latencyBoundsMs.length + 1 }, () => 0),
  };
}

function bucketOf(durationMs: number): number {
  let index = 0;
  for (const bound of latencyBoundsMs) {
    if (durationMs <= bound) return index;
    index++;
  }
  return index;
}

/** A percentile of the times to first content in milliseconds, as the upper bound of its bucket; `undefined`: no success.
 * @param part for example 0.95 */
export function latencyPercentile(
  { latencies }: Pick<AttemptCounts, "latencies">,
  part: number,
): number | undefined {
  const total = latencies.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  let left = Math.ceil(total * part);
  const index = latencies.findIndex((count) => (left -= count) <= 0);
  return latencyBoundsMs[index] ?? latencyBoundsMs.at(-1);
}
