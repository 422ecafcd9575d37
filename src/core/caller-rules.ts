/**
 * Identifies the caller, and the accounts that a caller may see. The edges have already checked
 * that this kind of caller may call the RPC.
 */
import type { HandlerContext } from "@connectrpc/connect";
import { ErrorCode, GatewayError } from "./errors.ts";
import { callerKey, type Caller, type KeyCaller } from "./caller.ts";

type Request = Pick<HandlerContext, "values">;

/** Whether the caller is an operator, who may see every account. */
export function isOperator({ values }: Request): boolean {
  return values.get(callerKey)?.kind === "operator";
}

/** Whether the caller may see this account: an operator any, a session only the user's. */
export function canSeeAccount(request: Request, accountId: string): boolean {
  if (isOperator(request)) return true;
  const caller = request.values.get(callerKey);
  return caller?.kind === "session" && caller.accountId === accountId;
}

/**
 * 404 for an unknown account and for an account of another customer. They are equal, so that
 * callers cannot find out which ids exist.
 */
export function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account: check account_id");
}

/**
 * The caller to charge: the access option of an RPC lets keys through, and an operator who calls in
 * process has no account.
 *
 * @throws GatewayError ACCESS_DENIED
 */
export function keyCallerOf(
  caller: Caller | undefined,
  told = "Calls to models need an API key: send one",
): KeyCaller {
  if (caller?.kind === "key") return caller;
  throw new GatewayError(ErrorCode.ACCESS_DENIED, told);
}

/**
 * As {@link keyCallerOf}, for requests without a call record; also refuses suspended accounts.
 *
 * @throws GatewayError ACCESS_DENIED
 */
export function admitCaller(caller: Caller | undefined, told?: string): KeyCaller {
  const found = keyCallerOf(caller, told);
  requireActive(found);
  return found;
}

/**
 * Refuses the keys of a suspended account (R-KEY-4). The edges do not call it, so that a refused
 * call is recorded like any other (R-MON-10).
 *
 * @throws GatewayError ACCESS_DENIED
 */
export function requireActive({ isSuspended }: KeyCaller): void {
  if (!isSuspended) return;
  throw new GatewayError(
    ErrorCode.ACCESS_DENIED,
    "Access denied: this account is suspended; ask the operator of the gateway to resume it",
  );
}
