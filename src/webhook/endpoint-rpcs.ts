/** The RPCs that list and re-enable receivers, and those that show and change an account's signing secret. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import { WebhookSecretSchema, type WebhookSecret } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { sessionOf } from "../core/browser-session.ts";
import { callerKey } from "../core/caller.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { recordActionOn } from "../core/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { isUuid, maxUuid } from "../core/uuid.ts";
import { transact } from "../db/transaction.ts";
import { accountCheck } from "./access.ts";
import { endpointMessage, endpointSql, type EndpointRow } from "./delivery-query.ts";
import { endpointOf } from "./delivery-rpcs.ts";
import { dueChannel } from "./enqueue.ts";
import type { AccountSecrets } from "./secrets.ts";
import type { WebhookRpcs, WebhookServiceOptions } from "./service.ts";

/** Closes the breaker and makes pending deliveries due now: a failure opens it again. */
const enableSql = `
  with enabled as (
    update webhook_endpoint set failures = 0, probes = 0, failing_since = null, open_until = null, dead_time = null
    where id = $1 returning id, account_id),
  freed as (
    update webhook_delivery set due = now() where endpoint_id = $1 and state = 1 and due > now())
  select pg_notify('${dueChannel}', id || ' ' || account_id) from enabled`;

/** Creates the endpoint RPCs. */
export function createEndpointRpcs({
  pool,
  accountExists,
}: WebhookServiceOptions): Pick<WebhookRpcs, "listEndpoints" | "reenableEndpoint"> {
  const requireAccount = accountCheck(accountExists);
  return {
    async listEndpoints(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const page = readPage(request, { isKey: isUuid });
      const text = `${endpointSql} where account_id = $1 and id < $2 order by id desc limit $3`;
      const values = [accountId, page.after ?? maxUuid, page.limit + 1];
      const { rows } = await mapDatabaseLoss(pool.query<EndpointRow>(text, values));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { endpoints: items.map(endpointMessage), nextPageToken };
    },

    async reenableEndpoint(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const id = endpointOf(accountId, request.origin);
      const row = await transact(pool, async (client) => {
        await client.query(enableSql, [id]);
        const read = await client.query<EndpointRow>(`${endpointSql} where id = $1`, [id]);
        const [enabled] = read.rows;
        if (enabled === undefined) throw noSuchEndpoint();
        const { origin } = enabled;
        await recordActionOn(client, context.values, {
          action: "webhook.enable",
          accountId,
          subject: id,
          after: { origin },
        });
        return enabled;
      });
      return { endpoint: endpointMessage(row) };
    },
  };
}

function noSuchEndpoint(): GatewayError {
  const text = "nothing was ever sent to this origin of the account: list its endpoints";
  return new GatewayError(ErrorCode.NOT_FOUND, text);
}

/** Creates the secret RPCs. */
export function createSecretRpcs({
  secrets,
  accountExists,
  requireStepUp,
}: WebhookServiceOptions): Pick<WebhookRpcs, "getSecret" | "rotateSecret" | "promoteSecret"> {
  const requireAccount = accountCheck(accountExists);
  const proved = async (
    { accountId, code }: { readonly accountId: string; readonly code: string },
    context: HandlerContext,
    action: CodeAction,
  ): Promise<string> => {
    const subjectId = await requireAccount(accountId, context);
    await requireStepUp(context, { action, subjectId, code });
    return subjectId;
  };
  return {
    async getSecret(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const found = await secrets.get(accountId);
      if (request.code === "" && isSession(context)) {
        return { secret: secretMessage(accountId, masked(found)) };
      }
      await proved(request, context, CodeAction.REVEAL_WEBHOOK_SECRET);
      return { secret: secretMessage(accountId, found) };
    },

    async rotateSecret(request, context) {
      const accountId = await proved(request, context, CodeAction.ROTATE_WEBHOOK_SECRET);
      return { secret: secretMessage(accountId, await secrets.rotate(accountId)) };
    },

    async promoteSecret(request, context) {
      const accountId = await proved(request, context, CodeAction.ROTATE_WEBHOOK_SECRET);
      const promoted = await secrets.promote(accountId, request.dropOld);
      return { secret: secretMessage(accountId, promoted) };
    },
  };
}

/** Whether the caller is signed in to the console, as a user or an operator. */
function isSession({ values }: HandlerContext): boolean {
  const caller = values.get(callerKey);
  return caller?.kind === "session" || sessionOf(caller) !== undefined;
}

/** Masks the secrets for a session without a second proof: its browser may be unattended. */
function masked(secrets: AccountSecrets): AccountSecrets {
  const { current, other } = secrets;
  return { ...secrets, current: mask(current), other: other === undefined ? other : mask(other) };
}

function mask(secret: string): string {
  return `${secret.slice(0, secret.indexOf("_") + 1)}…${secret.replace(/=+$/, "").slice(-4)}`;
}

function secretMessage(accountId: string, secrets: AccountSecrets): WebhookSecret {
  const { current, other = "", isPromoted, rotationEndTime } = secrets;
  return create(WebhookSecretSchema, {
    accountId,
    current,
    other,
    isPromoted,
    ...(rotationEndTime && { rotationEndTime: timestampFromDate(rotationEndTime) }),
  });
}
