/** How long to wait before a vendor is asked again. Pure. */

/** How far a pause may be from its value, so that what began together does not stay together. */
const jitter = 0.2;

/** How a pause grows. */
export interface PauseScale {
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
export function pauseMs({ firstMs, longestMs }: PauseScale, count: number, random: number): number {
  const pause = Math.min(longestMs, firstMs * 1.5 ** Math.min(count, 60));
  return Math.round(pause * (1 + jitter * (2 * random - 1)));
}
