/** Whose data a request to billing may see. */
import type { HandlerContext } from "@connectrpc/connect";
import { callerKey } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";

/** The account of a request: an operator's may be any, a session's only its own. @throws GatewayError NOT_FOUND */
export function parseAccount(accountId: string, context: Pick<HandlerContext, "values">): string {
  const caller = context.values.get(callerKey);
  const isOwn = caller?.kind === "session" && caller.accountId === accountId;
  if (!isOwn && caller?.kind !== "operator") throw noSuchAccount();
  return accountId;
}

/** As {@link parseAccount}; `undefined`: all accounts, which only an operator may ask for. */
export function parseScope(
  accountId: string,
  context: Pick<HandlerContext, "values">,
): string | undefined {
  if (accountId !== "") return parseAccount(accountId, context);
  if (isOperator(context)) return undefined;
  throw invalid("account_id", "account_id is required");
}

/** What is said of an account that there is not, and of one that is not the caller's. */
export function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account");
}

/** Whether the caller is an operator. */
export function isOperator(context: Pick<HandlerContext, "values">): boolean {
  return context.values.get(callerKey)?.kind === "operator";
}
