/**
 * Failpoints: named points of an operation where tests kill the process, to prove that no money is
 * lost.
 */

/**
 * Called synchronously at each point with its name, such as `hold.sent`. Never set in production.
 */
export type Failpoint = (point: string) => void;
