/** For whom this process is working at the moment: whoever waits for something that all share waits in line with
 * others of the same lane only, and lanes take turns. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Caller } from "./caller.ts";

const lanes = new AsyncLocalStorage<string>();

/** The lane of operators, of requests of nobody who is known yet, and of what the process does by itself. */
export const commonLane = "";

/** The lane of what runs now: an account's id, or {@link commonLane}. */
export function currentLane(): string {
  return lanes.getStore() ?? commonLane;
}

/** Runs work, and what it begins, in the lane of a caller. */
export function inLaneOf<Result>(caller: Caller | undefined, work: () => Result): Result {
  const lane = caller !== undefined && "accountId" in caller ? caller.accountId : commonLane;
  return lanes.run(lane, work);
}
