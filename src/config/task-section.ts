/** Reads `tasks:` of a configuration: how often customers may ask how they stand. */
import type { PollLimits } from "./config.ts";
import { type Entry, type Reader, fields, report } from "./reader.ts";
import { pollBurstDefault, pollsPerSecondDefault } from "./task-limits.ts";
import { positive } from "./values.ts";

/** Reads `tasks:`; without it the defaults count. */
export function readTasks(reader: Reader, entry: Entry | undefined): PollLimits {
  const given = entry ? fields(reader, entry, ["polls_per_second", "poll_burst"]) : {};
  const { polls_per_second: rate, poll_burst: most } = given;
  const perSecond = (rate && positive(reader, rate)) ?? pollsPerSecondDefault;
  const burst = most && positive(reader, most);
  if (most !== undefined && burst !== undefined && burst < perSecond) {
    report(reader, most, `must be at least polls_per_second, ${perSecond}: what comes in a second`);
  }
  return { perSecond, burst: burst ?? Math.max(pollBurstDefault, perSecond) };
}
