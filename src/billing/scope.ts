/** The account that a billing request is about, checked against its caller. */
import type { HandlerContext } from "@connectrpc/connect";
import { canSeeAccount, isOperator, noSuchAccount } from "../core/caller-rules.ts";
import { invalid } from "../core/validation.ts";

/**
 * The account of a request: any for an operator, its own for a session. @throws GatewayError
 * NOT_FOUND
 */
export function parseAccount(accountId: string, context: Pick<HandlerContext, "values">): string {
  if (!canSeeAccount(context, accountId)) throw noSuchAccount();
  return accountId;
}

/** Like {@link parseAccount}; undefined for all accounts, which only an operator may request. */
export function parseScope(
  accountId: string,
  context: Pick<HandlerContext, "values">,
): string | undefined {
  if (accountId !== "") return parseAccount(accountId, context);
  if (isOperator(context)) return undefined;
  throw invalid("account_id", "account_id is required");
}
