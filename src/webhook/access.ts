/** Which account a request to the webhook room is about, and whether its caller may ask. */
import type { HandlerContext } from "@connectrpc/connect";
import { callerKey } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { isUuid } from "../core/uuid.ts";

/** Whether the caller may see this account: an operator any, a session its own. */
export function maySee(context: Pick<HandlerContext, "values">, accountId: string): boolean {
  const caller = context.values.get(callerKey);
  if (isOperator(context)) return true;
  return caller?.kind === "session" && caller.accountId === accountId;
}

/** Whether the caller is an operator, who may see all accounts. */
export function isOperator(context: Pick<HandlerContext, "values">): boolean {
  return context.values.get(callerKey)?.kind === "operator";
}

/** Finds out whether an account is there, and its caller's. @throws GatewayError NOT_FOUND, in one way for all */
export type RequireAccount = (
  accountId: string,
  context: Pick<HandlerContext, "values">,
) => Promise<string>;

/** Makes the check. */
export function accountCheck(exists: (accountId: string) => Promise<boolean>): RequireAccount {
  return async (accountId, context) => {
    const isOpen = isUuid(accountId) && maySee(context, accountId);
    if (!isOpen || !(await exists(accountId))) {
      throw new GatewayError(ErrorCode.NOT_FOUND, "there is no such account: check account_id");
    }
    return accountId;
  };
}

/** A request that is wrong in the member `param`; the message says what would be right. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}
