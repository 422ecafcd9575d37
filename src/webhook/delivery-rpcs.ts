/** The RPCs that list and show deliveries. */
import type { HandlerContext } from "@connectrpc/connect";
import type { ListDeliveriesRequest } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { canSeeAccount, isOperator } from "../core/caller-rules.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { isUuid, maxUuid } from "../core/uuid.ts";
import { invalid } from "../core/validation.ts";
import { accountCheck, type WebhookRpcs, type WebhookServiceOptions } from "./access.ts";
import {
  attemptMessage,
  deliveryMessage,
  type DeliveryRow,
  deliverySql,
  stateConditions,
} from "./delivery-store.ts";
import { endpointIdOf } from "./enqueue.ts";
import { WebhookAttemptEntity, WebhookEventEntity } from "./entity.ts";

type DeliveryRpcs = Pick<WebhookRpcs, "listDeliveries" | "getDelivery">;

/** Maximum number of attempts that are shown, the newest. */
const shownAttemptsMax = 100;

/** Creates the delivery RPCs. */
export function createDeliveryRpcs(options: WebhookServiceOptions): DeliveryRpcs {
  const { pool, orm } = options;
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
      const all = [...values, page.after ?? maxUuid, page.limit + 1];
      const { rows } = await mapDatabaseLoss(pool.query<DeliveryRow>(text, all));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { deliveries: items.map(deliveryMessage), nextPageToken };
    },

    async getDelivery({ deliveryId }, context) {
      const row = await findDelivery(options, deliveryId, context);
      const newest = { orderBy: { number: "desc" }, limit: shownAttemptsMax } as const;
      const [event, attempts] = await mapDatabaseLoss(
        Promise.all([
          orm.em.fork().findOne(WebhookEventEntity, { id: row.id }, { populate: ["body"] }),
          orm.em.fork().find(WebhookAttemptEntity, { deliveryId: row.id }, newest),
        ]),
      );
      return {
        delivery: deliveryMessage(row),
        body: event === null ? "" : Buffer.from(event.body).toString(),
        attempts: attempts.toReversed().map(attemptMessage),
      };
    },
  };
}

/**
 * Finds a delivery that the caller may see. @throws GatewayError NOT_FOUND, equal for unknown and
 * foreign ones
 */
export async function findDelivery(
  options: WebhookServiceOptions,
  id: string,
  context: Pick<HandlerContext, "values">,
): Promise<DeliveryRow> {
  const row = isUuid(id) ? await readDelivery(options, id) : undefined;
  if (row === undefined || !canSeeAccount(context, row.account_id)) throw noSuchDelivery();
  return row;
}

/** Reads a delivery of any account; undefined if there is none with that id. */
export async function readDelivery(
  { pool }: WebhookServiceOptions,
  id: string,
): Promise<DeliveryRow | undefined> {
  const text = `${deliverySql} where delivery.id = $1`;
  return (await mapDatabaseLoss(pool.query<DeliveryRow>(text, [id]))).rows[0];
}

/** SQL conditions with numbered parameters, and their values. */
interface Filter {
  readonly where: string;
  readonly values: readonly unknown[];
}

/**
 * Turns a request into conditions; without an account, of all. @throws GatewayError INVALID_REQUEST
 */
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
  if (taskId !== "") add("event.task_id = ?", taskId);
  if (callbackId !== "") add("event.callback_id = ?", callbackId);
  if (origin !== "" && accountId !== undefined) {
    add("delivery.endpoint_id = ?", endpointOf(accountId, origin));
  } else if (origin !== "") add("endpoint.origin = ?", originOf(origin));
  return { where: where.join(" and "), values };
}

/**
 * The id of the receiver with an origin.
 *
 * @throws GatewayError INVALID_REQUEST if the text is no origin
 */
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

/** 404 for an unknown delivery and for one of another account: equal. */
export function noSuchDelivery(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such delivery: check delivery_id");
}
