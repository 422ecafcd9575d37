/** The RPCs that resend deliveries and send test events. SQL: sets of rows change and notify in one statement. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { WebhookStatus } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { readPublicUrl } from "../http/public-url.ts";
import { recordActionOn } from "../core/operator-log.ts";
import { invalid, present } from "../core/validation.ts";
import { accountCheck, type WebhookRpcs, type WebhookServiceOptions } from "./access.ts";
import { deliveryMessage } from "./delivery-query.ts";
import { endpointOf, findDelivery, noSuchDelivery, readDelivery } from "./delivery-rpcs.ts";
import { dueChannel, enqueueWebhook } from "./enqueue.ts";
import { EventKind } from "./schedule.ts";
import { testEvent } from "./test-event.ts";
import { transact } from "../db/transaction.ts";
import { newId } from "../core/uuid.ts";

type Rpcs = Pick<WebhookRpcs, "resendDelivery" | "resendFailed" | "sendTestEvent">;

const sql = {
  /** A pending delivery becomes due now; an ended one begins its schedule anew. */
  resend: `
    with again as (
      update webhook_delivery set state = 1, due = now(), end_time = null, is_urgent = true,
        series = case when state = 1 then series else 0 end
      where id = $1 and state <> 2 returning endpoint_id, account_id)
    select pg_notify('${dueChannel}', endpoint_id || ' ' || account_id) from again`,
  /** Ends of tasks only, not failed tests or progress. The breakers of their receivers stay. */
  resendFailed: `
    with again as (
      update webhook_delivery delivery set state = 1, due = now(), end_time = null, series = 0
      from webhook_event event
      where event.id = delivery.id and delivery.account_id = $1 and delivery.state = 4 and delivery.kind = 2
        and event.create_time >= $2 and ($3::uuid is null or delivery.endpoint_id = $3)
      returning delivery.endpoint_id, delivery.account_id),
    told as (
      select pg_notify('${dueChannel}', endpoint_id || ' ' || account_id)
      from (select distinct endpoint_id, account_id from again) receivers)
    select (select count(*)::int from again) as count, (select count(*) from told) as told`,
} as const;

/** Without a status the payload tells of a success. */
const statusWords = new Map<WebhookStatus, "progress" | "completed" | "failed" | "cancelled">([
  [WebhookStatus.PROGRESS, "progress"],
  [WebhookStatus.COMPLETED, "completed"],
  [WebhookStatus.FAILED, "failed"],
  [WebhookStatus.CANCELLED, "cancelled"],
]);

/** Creates the resend RPCs. */
export function createResendRpcs(options: WebhookServiceOptions): Rpcs {
  const { pool } = options;
  const requireAccount = accountCheck(options.accountExists);
  return {
    async resendDelivery({ deliveryId }, context) {
      const { values } = context;
      const row = await findDelivery(options, deliveryId, context);
      if (row.kind === EventKind.PROGRESS) throw noProgress();
      await transact(pool, async (client) => {
        await client.query(sql.resend, [row.id]);
        await recordActionOn(client, values, {
          action: "webhook.resend",
          accountId: row.account_id,
          subject: row.id,
        });
      });
      return { delivery: deliveryMessage((await readDelivery(options, row.id)) ?? row) };
    },

    async resendFailed(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const endpointId = request.origin === "" ? null : endpointOf(accountId, request.origin);
      const since = timestampDate(present(request.since));
      const { origin } = request;
      return transact(pool, async (client) => {
        const asked = [accountId, since, endpointId];
        const { rows } = await client.query<{ count: number }>(sql.resendFailed, asked);
        const deliveryCount = rows[0]?.count ?? 0;
        await recordActionOn(client, context.values, {
          action: "webhook.resend_failed",
          accountId,
          subject: accountId,
          after: { deliveryCount, since, ...(origin !== "" && { origin }) },
        });
        return { deliveryCount };
      });
    },

    sendTestEvent: createTestRpc(options),
  };
}

function createTestRpc(options: WebhookServiceOptions): Rpcs["sendTestEvent"] {
  const { pool } = options;
  const requireAccount = accountCheck(options.accountExists);
  return async (request, context) => {
    const accountId = await requireAccount(request.accountId, context);
    const read = readPublicUrl(request.url, options.allowHosts);
    if ("problem" in read) throw invalid("url", `url ${read.problem}`);
    const status = statusWords.get(request.status) ?? "completed";
    const url = read.url.href;
    const event = testEvent({
      accountId,
      url,
      status,
      taskId: newId(),
    });
    const id = await transact(pool, async (client) => {
      const deliveryId = await enqueueWebhook(client, event);
      await recordActionOn(client, context.values, {
        action: "webhook.test",
        accountId,
        subject: deliveryId ?? accountId,
        // Not the whole address: its path may contain a secret of the receiver.
        after: { origin: read.url.origin },
      });
      return deliveryId;
    });
    const row = await readDelivery(options, id ?? "");
    if (row === undefined) throw noSuchDelivery();
    return { delivery: deliveryMessage(row) };
  };
}

function noProgress(): GatewayError {
  const text = "progress is not sent again: it is outdated";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "delivery_id" });
}
