/** The RPCs that show deliveries. */
import type { HandlerContext } from "@connectrpc/connect";
import type { ListDeliveriesRequest } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { answering } from "../database-lost.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { cutPage, readPage } from "../page-token.ts";
import { isUuid } from "../uuid.ts";
import { accountCheck, invalid, maySee } from "./access.ts";
import {
  attemptMessage,
  type AttemptRow,
  attemptSql,
  deliveryMessage,
  type DeliveryRow,
  deliverySql,
  stateConditions,
} from "./delivery-query.ts";
import { endpointIdOf } from "./endpoint.ts";
import type { WebhookRpcs, WebhookServiceOptions } from "./service.ts";

type Rpcs = Pick<WebhookRpcs, "listDeliveries" | "getDelivery">;

const topId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

const sql = {
  body: "select body from webhook_event where id = $1",
} as const;

/** Makes them. */
export function createDeliveryRpcs(options: WebhookServiceOptions): Rpcs {
  const { pool } = options;
  const requireAccount = accountCheck(options.accountExists);
  return {
    async listDeliveries(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const page = readPage(request, { isKey: isUuid });
      const { where, values } = filterOf(accountId, request);
      const text = `${deliverySql} where ${where} order by delivery.id desc limit $3`;
      const all = [accountId, page.after ?? topId, page.limit + 1, ...values];
      const { rows } = await answering(pool.query<DeliveryRow>(text, all));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { deliveries: items.map(deliveryMessage), nextPageToken };
    },

    async getDelivery({ deliveryId }, context) {
      const row = await findDelivery(options, deliveryId, context);
      const [body, attempts] = await answering(
        Promise.all([
          pool.query<{ body: Buffer }>(sql.body, [row.id]),
          pool.query<AttemptRow>(attemptSql, [row.id]),
        ]),
      );
      return {
        delivery: deliveryMessage(row),
        body: body.rows[0]?.body.toString() ?? "",
        attempts: attempts.rows.map(attemptMessage),
      };
    },
  };
}

/** A delivery of the caller's. @throws GatewayError NOT_FOUND, in one way for all */
export async function findDelivery(
  options: WebhookServiceOptions,
  id: string,
  context: Pick<HandlerContext, "values">,
): Promise<DeliveryRow> {
  const row = isUuid(id) ? await readDelivery(options, id) : undefined;
  if (row === undefined || !maySee(context, row.account_id)) throw noSuchDelivery();
  return row;
}

/** A delivery, whoever's; `undefined`: there is none by that id. */
export async function readDelivery(
  { pool }: WebhookServiceOptions,
  id: string,
): Promise<DeliveryRow | undefined> {
  const text = `${deliverySql} where delivery.id = $1`;
  return (await answering(pool.query<DeliveryRow>(text, [id]))).rows[0];
}

/** Conditions behind account ($1) and position ($2); $3 is the limit. */
function filterOf(
  accountId: string,
  { state, taskId, callbackId, origin }: ListDeliveriesRequest,
): { where: string; values: string[] } {
  if (!(state in stateConditions)) throw invalid("state", "state is none of a delivery");
  const where = ["delivery.account_id = $1", "delivery.id < $2", stateConditions[state]];
  const values: string[] = [];
  const add = (column: string, value: string): void => {
    values.push(value);
    where.push(`${column} = $${values.length + 3}`);
  };
  if (taskId !== "") {
    if (!isUuid(taskId)) throw invalid("task_id", "task_id must be a UUID in lower case");
    add("event.lane", taskId);
  }
  if (callbackId.includes("\0")) throw invalid("callback_id", "callback_id must have no zero byte");
  if (callbackId !== "") add("event.callback_id", callbackId);
  if (origin !== "") add("delivery.endpoint_id", endpointOf(accountId, origin));
  return { where: where.join(" and "), values };
}

/** The receiver by an origin as callers write it. @throws GatewayError where it is none */
export function endpointOf(accountId: string, origin: string): string {
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin.replace(/\/$/, "")) {
    throw invalid(
      "origin",
      "origin must be scheme, host and port, such as https://hooks.example.com",
    );
  }
  return endpointIdOf(accountId, url.origin);
}

/** What is said of a delivery that is not there, or somebody else's. */
export function noSuchDelivery(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such delivery: check delivery_id");
}
