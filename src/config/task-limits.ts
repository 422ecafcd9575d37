/** Every fixed limit of tasks, with its unit and its reason; the others are in limits.ts. */

/** How long a process has a task to itself without a sign of life, in milliseconds: a task of one that was
 * killed goes on elsewhere within 30 s. */
export const taskLeaseMs = 25_000;

/** How often a process tells that it still works on its tasks, in milliseconds. */
export const taskHeartbeatMs = 8_000;

/** How often is looked for tasks that are due, in milliseconds. Own ones are taken up at once. */
export const taskScanMs = 500;

/** The most tasks of an account that run at once: the others wait for their turn. */
export const taskAccountRunningMax = 20;

/** The most tasks that one process submits at once. */
export const taskSubmitsMax = 256;

/** The most tasks that one process looks after at one moment: each takes as long as one question to its vendor. */
export const taskChecksMax = 256;

/** The most tasks that are claimed by one statement. */
export const taskClaimMax = 64;

/** The pause before a vendor is asked how a task stands, in milliseconds: it grows by half each time. */
export const taskPollMs = 1_000;

/** The longest of them, in milliseconds. */
export const taskPollMsMax = 15_000;

/** How long a vendor may take to show a task that it was asked for, in milliseconds: only then is "not there"
 * believed. */
export const taskSettleMs = 10_000;

/** How long a vendor that cannot be asked may take to tell of a task by itself, in milliseconds. */
export const taskUnknownMs = 10 * 60 * 1_000;

/** How long a vendor is asked what it took for a task that has ended without a charge, in milliseconds: a day,
 * in which vendors forget tasks. */
export const taskTrailMs = 24 * 60 * 60 * 1_000;

/** How often no connection is made, in a row, before a task fails: about four minutes. */
export const taskConnectsMax = 20;

/** How long a task waits for its operator where every vendor refuses the operator's own account, in milliseconds from
 * its first submit on; at most half of its time. Then its client is told. */
export const taskFaultMs = 2 * 60_000;

/** The longest pause before such a vendor is asked again, in milliseconds: it grows from that of polls on. */
export const taskFaultPauseMs = 60_000;

/** How often a result is fetched before the task fails. */
export const taskFetchesMax = 6;

/** How long a task is kept after its end, in milliseconds: 30 days, as long as its callback id counts. */
export const taskKeptMs = 30 * 24 * 60 * 60 * 1_000;

/** How long a task may wait for its turn, and how long its hold lives, in milliseconds: a day, and three, which is
 * longer than any task; a task ends its hold itself. */
export const taskQueueMs = 24 * 60 * 60 * 1_000;
export const taskHoldTtlMs = 3 * taskQueueMs;

/** The most tasks of one account that may wait for their turn. */
export const queuedTasksMax = 1_000;

/** The longest wait of a poll, in seconds; how many polls and watches of one account wait at once in a process. */
export const pollWaitSecondsMax = 60;
export const parkedPollsMax = 100;

/** How long a task may take from when its vendor is asked first, in milliseconds, where its model's configuration does
 * not say: half an hour. */
export const taskRunMs = 30 * 60 * 1_000;
