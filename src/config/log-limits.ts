/** The limits of looking into the call log. */

/** How many calls of the log are looked through at first for those that a filter means, and at most at once; and how
 * long a page may go on looking, in milliseconds: a list answers in 200 ms, with a next page where it has not seen
 * everything. */
export const logWindowRows = 1_000;
export const logWindowRowsMax = 32_000;
export const logWindowsMs = 80;

/** The most calls that a histogram looks at where sums do not tell. */
export const histogramRowsMax = 100_000;

/** The most calls of an export. */
export const exportRowsMax = 100_000;

/** The most live views of the call log of an account, and of a process. */
export const tailsPerAccountMax = 10;
export const tailsMax = 500;

/** How long a live view lasts, and how long it says nothing, in milliseconds: who may look is asked again, and
 * whoever has left is noticed. */
export const tailMs = 15 * 60_000;
export const tailQuietMs = 15_000;

/** The most calls that a live view tells at once, and its pause between two messages, in milliseconds. */
export const tailRowsMax = 200;
export const tailPauseMs = 200;

/** How long a process counts as a watcher of the call log without saying so again, and how often it says so, in
 * milliseconds. */
export const watchTtlMs = 30_000;
export const watchRenewMs = 10_000;

/** The most redeem codes that are made at once. */
export const redeemCodesMax = 1_000;
