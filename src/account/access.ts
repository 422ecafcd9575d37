/** Which accounts a caller may see and change. What kind of caller may call at all is checked before. */
import type { Caller } from "../caller.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { isUuid } from "../uuid.ts";

/** Whether the caller may see this account: an operator any, a session its own. */
export function maySeeAccount(caller: Caller | undefined, accountId: string): boolean {
  if (caller?.kind === "operator") return true;
  return caller?.kind === "session" && caller.accountId === accountId;
}

/**
 * The account of a request, as far as it can be told without asking the database.
 *
 * @throws GatewayError NOT_FOUND for a malformed id and for an account of somebody else: as for one that
 * does not exist, so that nobody learns which do.
 */
export function parseAccountId(caller: Caller | undefined, accountId: string): string {
  if (!isUuid(accountId) || !maySeeAccount(caller, accountId)) throw noSuchAccount();
  return accountId;
}

/** What is said of an account that does not exist or is somebody else's. */
export function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account: check account_id");
}
