/** The account that a webhook request is about, checked against its caller. */
import type { HandlerContext } from "@connectrpc/connect";
import { canSeeAccount, noSuchAccount } from "../core/access.ts";
import { isUuid } from "../core/uuid.ts";

/** Returns the account's id where it exists and the caller may see it. @throws GatewayError NOT_FOUND otherwise */
export type RequireAccount = (
  accountId: string,
  context: Pick<HandlerContext, "values">,
) => Promise<string>;

/** Creates the check. @param exists whether there is such an account */
export function accountCheck(exists: (accountId: string) => Promise<boolean>): RequireAccount {
  return async (accountId, context) => {
    const isVisible = isUuid(accountId) && canSeeAccount(context, accountId);
    if (!isVisible || !(await exists(accountId))) throw noSuchAccount();
    return accountId;
  };
}
