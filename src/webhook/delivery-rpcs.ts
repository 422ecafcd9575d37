/** The RPCs that show deliveries. */
import type { HandlerContext } from "@connectrpc/connect";
import type { ListDeliveriesRequest } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { answering } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { isUuid } from "../core/uuid.ts";
import { accountCheck, invalid, isOperator, maySee } from "./access.ts";
import {
  attemptMessage,
  type AttemptRow,
  attemptSql,
  deliveryMessage,
  type DeliveryRow,
  deliverySql,
  stateConditions,
} from "./delivery-query.ts";
import { endpointIdOf } from "./enqueue.ts";
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
      const isOfAll = request.accountId === "" && isOperator(context);
      const accountId = isOfAll ? undefined : await requireAccount(request.accountId, context);
      const page = readPage(request, { isKey: isUuid });
      const { where, values } = filterOf(accountId, request);
      const count = values.length;
      const text =
        `${deliverySql} where ${where} and delivery.id < $${count + 1} ` +
        `order by delivery.id desc limit $${count + 2}`;
      const all = [...values, page.after ?? topId, page.limit + 1];
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

/** What a list is narrowed to: conditions, and the values that they name by their number. */
interface Filter {
  readonly where: string;
  readonly values: readonly unknown[];
}

/** Without an account: of all. @throws GatewayError where no delivery can be meant */
function filterOf(
  accountId: string | undefined,
  { state, taskId, callbackId, origin }: ListDeliveriesRequest,
): Filter {
  const where = [stateConditions[state]];
  const values: unknown[] = [];
  const add = (term: string, value: unknown): void => {
    where.push(term.replace("?", `$${values.push(value)}`));
  };
  if (accountId !== undefined) add("delivery.account_id = ?", accountId);
  if (taskId !== "") add("event.lane = ?", taskId);
  if (callbackId !== "") add("event.callback_id = ?", callbackId);
  if (origin !== "" && accountId !== undefined) {
    add("delivery.endpoint_id = ?", endpointOf(accountId, origin));
  } else if (origin !== "") add("endpoint.origin = ?", originOf(origin));
  return { where: where.join(" and "), values };
}

/** The receiver by an origin as callers write it. @throws GatewayError where it is none */
export function endpointOf(accountId: string, origin: string): string {
  return endpointIdOf(accountId, originOf(origin));
}

function originOf(origin: string): string {
  const url = URL.parse(origin);
  if (url !== null && url.origin === origin.replace(/\/$/, "")) return url.origin;
  throw invalid(
    "origin",
    "origin must be scheme, host and port, such as https://hooks.example.com",
  );
}

/** What is said of a delivery that is not there, or somebody else's. */
export function noSuchDelivery(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such delivery: check delivery_id");
}
