/** Which accounts a caller may see. What kind of caller may call an RPC at all is checked before. */
import type { HandlerContext } from "@connectrpc/connect";
import { callerKey } from "./caller.ts";
import { ErrorCode, GatewayError } from "./errors.ts";

type Request = Pick<HandlerContext, "values">;

/** Whether the caller is an operator, who may see every account. */
export function isOperator({ values }: Request): boolean {
  return values.get(callerKey)?.kind === "operator";
}

/** Whether the caller may see this account: an operator any, a session its own. */
export function canSeeAccount(request: Request, accountId: string): boolean {
  if (isOperator(request)) return true;
  const caller = request.values.get(callerKey);
  return caller?.kind === "session" && caller.accountId === accountId;
}

/** 404 for an unknown account and for one of another customer: equal, so that nobody learns which ids exist. */
export function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account: check account_id");
}
