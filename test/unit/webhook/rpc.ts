/** The webhook service over a test's database, without an edge. */
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { pino } from "pino";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { type Caller, callerKey } from "../../../src/core/caller.ts";
import { fromRpcError } from "../../../src/core/errors.ts";
import { createDirectTransport } from "../../../src/edge/rpc/direct-transport.ts";
import { createErrorMapping } from "../../../src/edge/rpc/interceptors.ts";
import { serve } from "../../../src/core/contract-rules.ts";
import { createWebhookService } from "../../../src/webhook/service.ts";
import type { Webhooks } from "./harness.ts";
import { newId } from "../../../src/core/uuid.ts";

/** Calls it. */
export type WebhookClient = Client<typeof WebhookService>;

/** The accounts that there are. */
export const [accountId, otherAccount] = [newId(), newId()];

/** The service as a caller reaches it. It knows two accounts. */
export function as(webhooks: Webhooks, caller: Caller): WebhookClient {
  const service = createWebhookService({
    orm: webhooks.orm,
    pool: webhooks.pool,
    secrets: webhooks.secrets,
    accountExists: async (id) => id === accountId || id === otherAccount,
    // As everywhere: who comes without a session needs no code.
    requireStepUp: async ({ values }) => {
      if (values.get(callerKey)?.kind === "session") throw new Error("no codes here");
    },
    allowHosts: [],
  });
  const transport = createDirectTransport(
    [serve(WebhookService, service)],
    [
      createErrorMapping(pino({ enabled: false })),
      (next) => (request) => {
        request.contextValues.set(callerKey, caller);
        return next(request);
      },
    ],
  );
  return createClient(WebhookService, transport);
}

/** The code that a call fails with; `undefined` if it succeeds. */
export async function codeOf(call: Promise<unknown>): Promise<number | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => fromRpcError(ConnectError.from(error)).code,
  );
}
