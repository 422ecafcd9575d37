/** The account that a webhook request is about, checked against its caller. */
import type { WebhookService } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import type { ServiceImpl, HandlerContext } from "@connectrpc/connect";
import type { Secrets } from "./secrets.ts";
import type { RequireStepUp } from "../core/browser-session.ts";
import type { Pool } from "pg";
import type { MikroORM } from "@mikro-orm/postgresql";
import { canSeeAccount, noSuchAccount } from "../core/caller-rules.ts";
import { isUuid } from "../core/uuid.ts";

/**
 * Returns the account's id if it exists and the caller may see it.
 *
 * @throws GatewayError NOT_FOUND otherwise
 */
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

/** Options of {@link createWebhookService}. */
export interface WebhookServiceOptions {
  readonly orm: MikroORM;
  readonly pool: Pool;
  readonly secrets: Secrets;
  /** Whether there is such an account, as the account room reports. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
  /** Checks the second proof of a session. */
  readonly requireStepUp: RequireStepUp;
  /** Hosts that webhooks may reach although they are not public. */
  readonly allowHosts: readonly string[];
}

/** The RPCs of WebhookService by name. */
export type WebhookRpcs = ServiceImpl<typeof WebhookService>;
