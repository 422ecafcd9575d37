/** Whether leases and deadlines can be believed: the database's clock may have been set forward since a process looked. */

/** After how long without a look at the clock nothing is known about it, in milliseconds: more than the interval of looks,
 * and less than what is left of the lease of a process that renews it. */
const unknownMs = 15_000;

/** SQL: whether no process has looked at the database's clock (`clock_follow`) for so long by that clock. False where none
 * ever did. */
export const isClockUnknown = `exists (
  select from clock_mark where time < clock_timestamp() - interval '${unknownMs} ms')`;
