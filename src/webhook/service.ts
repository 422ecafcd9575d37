/** The RPCs of WebhookService. The access option of each RPC is checked before; the account is checked here. */
import type { WebhookServiceOptions, WebhookRpcs } from "./access.ts";
import { createDeliveryRpcs } from "./delivery-rpcs.ts";
import { createEndpointRpcs, createSecretRpcs } from "./endpoint-rpcs.ts";
import { createResendRpcs } from "./resend-rpcs.ts";

/** Creates the implementation of `uas.webhook.v1.WebhookService`. */
export function createWebhookService(options: WebhookServiceOptions): WebhookRpcs {
  return {
    ...createSecretRpcs(options),
    ...createDeliveryRpcs(options),
    ...createResendRpcs(options),
    ...createEndpointRpcs(options),
  };
}
