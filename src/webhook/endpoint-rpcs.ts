/** The RPCs that show receivers, and take one for healthy again. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type InferEntity, raw } from "@mikro-orm/core";
import type { EntityManager } from "@mikro-orm/postgresql";
import {
  type Endpoint,
  EndpointSchema,
  EndpointState,
} from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { answering } from "../database-lost.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { cutPage, readPage } from "../page-token.ts";
import { recordAction } from "../operator-log.ts";
import { transact } from "../transact.ts";
import { isUuid } from "../uuid.ts";
import { accountCheck } from "./access.ts";
import { endpointOf } from "./delivery-rpcs.ts";
import { dueChannel } from "./enqueue.ts";
import { WebhookDeliveryEntity, WebhookEndpointEntity } from "./entity.ts";
import type { WebhookRpcs, WebhookServiceOptions } from "./service.ts";

type EndpointRow = InferEntity<typeof WebhookEndpointEntity>;

/** `webhook_delivery.state` of a delivery that waits. */
const pending = 1;

/** What closes the breaker. */
const healthy = {
  failures: 0,
  probes: 0,
  failingSince: null,
  openUntil: null,
  deadTime: null,
} as const;

/** Makes them. */
export function createEndpointRpcs({
  orm,
  accountExists,
}: WebhookServiceOptions): Pick<WebhookRpcs, "listEndpoints" | "reenableEndpoint"> {
  const requireAccount = accountCheck(accountExists);
  return {
    async listEndpoints(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const page = readPage(request, { isKey: isUuid });
      const where = { accountId, ...(page.after !== undefined && { id: { $lt: page.after } }) };
      const newest = { orderBy: { id: "desc" }, limit: page.limit + 1 } as const;
      const em = orm.em.fork();
      const rows = await answering(em.find(WebhookEndpointEntity, where, newest));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { endpoints: await answering(endpointMessages(em, items)), nextPageToken };
    },

    async reenableEndpoint(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const id = endpointOf(accountId, request.origin);
      return transact(orm, async (em) => {
        const endpoint = await enable(em, id);
        await recordAction(em, context.values, {
          action: "webhook.enable",
          accountId,
          subject: id,
          after: { origin: endpoint.origin },
        });
        const [message] = await endpointMessages(em, [endpoint]);
        return message === undefined ? {} : { endpoint: message };
      });
    },
  };
}

/** Closes the breaker and lets what waits go now: one that fails again opens it again. */
async function enable(em: EntityManager, id: string): Promise<EndpointRow> {
  if ((await em.nativeUpdate(WebhookEndpointEntity, { id }, healthy)) === 0) {
    throw noSuchEndpoint();
  }
  const later = { endpointId: id, state: pending, due: { $gt: raw<Date>("now()") } };
  await em.nativeUpdate(WebhookDeliveryEntity, later, { due: raw<Date>("now()") });
  const endpoint = await em.findOneOrFail(WebhookEndpointEntity, { id });
  await em.execute("select pg_notify(?, ?)", [dueChannel, `${id} ${endpoint.accountId}`]);
  return endpoint;
}

async function endpointMessages(
  em: EntityManager,
  rows: readonly EndpointRow[],
): Promise<Endpoint[]> {
  const where = { endpointId: { $in: rows.map(({ id }) => id) }, state: pending };
  const waiting = await em.countBy(WebhookDeliveryEntity, "endpointId", { where });
  return rows.map((row) => endpointMessage(row, waiting[row.id] ?? 0));
}

function endpointMessage(row: EndpointRow, waitingCount: number): Endpoint {
  const state = endpointState(row);
  const { failingSince, openUntil, successTime, failureTime } = row;
  const nextProbeTime = state === EndpointState.FAILING ? openUntil : undefined;
  return create(EndpointSchema, {
    accountId: row.accountId,
    origin: row.origin,
    state,
    failureCount: row.failures,
    ...(failingSince && { failingSince: timestampFromDate(failingSince) }),
    ...(nextProbeTime && { nextProbeTime: timestampFromDate(nextProbeTime) }),
    ...(successTime && { successTime: timestampFromDate(successTime) }),
    ...(failureTime && { failureTime: timestampFromDate(failureTime) }),
    waitingCount,
  });
}

function endpointState({ deadTime, openUntil }: EndpointRow): EndpointState {
  if (deadTime != null) return EndpointState.DEAD;
  return openUntil == null ? EndpointState.HEALTHY : EndpointState.FAILING;
}

function noSuchEndpoint(): GatewayError {
  const text = "nothing was ever sent to this origin of the account: see ListEndpoints";
  return new GatewayError(ErrorCode.NOT_FOUND, text);
}
