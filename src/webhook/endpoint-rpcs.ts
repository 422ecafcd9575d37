/** The RPCs that list and re-enable receivers, and those that show and change an account's signing secret. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { raw, type InferEntity } from "@mikro-orm/core";
import type { EntityManager } from "@mikro-orm/postgresql";
import { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import {
  EndpointSchema,
  EndpointState,
  WebhookSecretSchema,
  type Endpoint,
  type WebhookSecret,
} from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { sessionOf } from "../core/browser-session.ts";
import { callerKey } from "../core/caller.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { recordAction } from "../core/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { isUuid } from "../core/uuid.ts";
import { transact } from "../db/transaction.ts";
import { accountCheck, type WebhookRpcs, type WebhookServiceOptions } from "./access.ts";
import { endpointOf } from "./delivery-rpcs.ts";
import { dueChannel } from "./enqueue.ts";
import { WebhookDeliveryEntity, WebhookEndpointEntity } from "./entity.ts";
import type { AccountSecrets } from "./secrets.ts";

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

/** Creates the endpoint RPCs. */
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
      const rows = await mapDatabaseLoss(em.find(WebhookEndpointEntity, where, newest));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { endpoints: await mapDatabaseLoss(endpointMessages(em, items)), nextPageToken };
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
