/** The RPCs of WebhookService. The access option of each RPC is checked before; the account is checked here. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { Pool } from "pg";
import type { WebhookService } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import type { RequireStepUp } from "../core/browser-session.ts";
import { createDeliveryRpcs } from "./delivery-rpcs.ts";
import { createEndpointRpcs, createSecretRpcs } from "./endpoint-rpcs.ts";
import { createResendRpcs } from "./resend-rpcs.ts";
import type { Secrets } from "./secrets.ts";

/** Options of {@link createWebhookService}. */
export interface WebhookServiceOptions {
  readonly orm: MikroORM;
  readonly pool: Pool;
  readonly secrets: Secrets;
  /** Whether there is such an account. The account room knows. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
  /** Checks the second proof of a session. */
  readonly requireStepUp: RequireStepUp;
  /** Hosts that webhooks may reach although they are not public. */
  readonly allowHosts: readonly string[];
}

/** The RPCs of WebhookService by name. */
export type WebhookRpcs = ServiceImpl<typeof WebhookService>;

/** Creates the implementation of `uas.webhook.v1.WebhookService`. */
export function createWebhookService(options: WebhookServiceOptions): WebhookRpcs {
  return {
    ...createSecretRpcs(options),
    ...createDeliveryRpcs(options),
    ...createResendRpcs(options),
    ...createEndpointRpcs(options),
  };
}
