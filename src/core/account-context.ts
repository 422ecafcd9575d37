/**
 * The account that the current work is for. Shared resources (database connections, queues) serve accounts in turn,
 * so that one busy account cannot starve the others.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Caller } from "./caller.ts";

const contexts = new AsyncLocalStorage<string>();

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
  const accountId =
    caller !== undefined && "accountId" in caller ? caller.accountId : sharedContext;
  return contexts.run(accountId, work);
}
