/**
 * The account for which the current work runs. Shared resources (database connections, queues)
 * serve accounts in turn, so that one busy account cannot starve the others.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Caller } from "./caller.ts";

const contexts = new AsyncLocalStorage<string>();

/** Runs work in a context that exists already. */
type Enter = <Result>(work: () => Result) => Result;

/**
 * The contexts of callers. Each new one copies a map, which costs a call 2 µs. The caller of a
 * cached key is one object, so nearly all of its calls share one context.
 */
const known = new WeakMap<Caller, Enter>();

/** The context of operators, of callers not yet identified, and of background jobs. */
export const sharedContext = "";

/** The account id of the current work, or {@link sharedContext}. */
export function currentAccountContext(): string {
  return contexts.getStore() ?? sharedContext;
}

/** Runs work, and everything it starts, in the account context of a caller. */
export function runInAccountContext<Result>(
  caller: Caller | undefined,
  work: () => Result,
): Result {
  if (caller === undefined || !("accountId" in caller)) return contexts.run(sharedContext, work);
  let enter = known.get(caller);
  if (enter === undefined) {
    enter = contexts.run(caller.accountId, () => AsyncLocalStorage.snapshot() as Enter);
    known.set(caller, enter);
  }
  return enter(work);
}
