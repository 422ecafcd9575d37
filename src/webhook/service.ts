/**
 * The RPCs of WebhookService. The access option of each RPC is checked before; the account is
 * checked here.
 */
import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { type InferEntity, raw } from "@mikro-orm/core";
import type { EntityManager } from "@mikro-orm/postgresql";
import { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import {
  type Endpoint,
  EndpointSchema,
  EndpointState,
  type WebhookSecret,
  WebhookSecretSchema,
  WebhookStatus,
} from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { callerKey } from "../core/caller.ts";
import { sessionOf } from "../core/browser-session.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { recordAction, recordActionOn } from "../observe/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { isUuid, newId } from "../core/uuid.ts";
import { invalid, present } from "../core/validation.ts";
import { transact } from "../db/pool/transaction.ts";
import { readPublicUrl } from "../http/public-url.ts";
import { accountCheck, type WebhookRpcs, type WebhookServiceOptions } from "./access.ts";
import { deliveryMessage } from "./delivery-store.ts";
import { dueChannel, enqueueWebhook, type WebhookEvent } from "./enqueue.ts";
import { WebhookDeliveryEntity, WebhookEndpointEntity } from "./entity.ts";
import type { WebhookStatus as StatusWord } from "./payload.ts";
import { EventKind } from "./schedule.ts";
import type { AccountSecrets } from "./secrets.ts";
import {
  createDeliveryRpcs,
  endpointOf,
  findDelivery,
  readDelivery,
  noSuchDelivery,
} from "./delivery-rpcs.ts";

/** Creates the implementation of `uas.webhook.v1.WebhookService`. */
export function createWebhookService(options: WebhookServiceOptions): WebhookRpcs {
  return {
    ...createSecretRpcs(options),
    ...createDeliveryRpcs(options),
    ...createResendRpcs(options),
    ...createEndpointRpcs(options),
  };
}

type EndpointRow = InferEntity<typeof WebhookEndpointEntity>;

/** `webhook_delivery.state` of a delivery that waits. */
const pending = 1;

/** The values that close the breaker. */
const healthy = {
  failures: 0,
  probes: 0,
  failingSince: null,
  openUntil: null,
  deadTime: null,
} as const;

/** Creates the endpoint RPCs. */
function createEndpointRpcs({
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

/** Closes the breaker and makes waiting deliveries due now. A failure opens it again. */
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
  const text = "no webhook was ever sent to this origin: list the endpoints of the account";
  return new GatewayError(ErrorCode.NOT_FOUND, text);
}

/** Creates the secret RPCs. */
function createSecretRpcs({
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

type Rpcs = Pick<WebhookRpcs, "resendDelivery" | "resendFailed" | "sendTestEvent">;

const sql = {
  /** A pending delivery becomes due now; an ended one restarts its schedule. */
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

/** Without a status the payload means success. */
const statusWords = new Map<WebhookStatus, StatusWord>([
  [WebhookStatus.PROGRESS, "progress"],
  [WebhookStatus.COMPLETED, "completed"],
  [WebhookStatus.FAILED, "failed"],
  [WebhookStatus.CANCELLED, "cancelled"],
]);

/** Creates the resend RPCs. */
function createResendRpcs(options: WebhookServiceOptions): Rpcs {
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

/** Options of {@link testEvent}. */
interface TestOptions {
  readonly accountId: string;
  readonly url: string;
  readonly status: StatusWord;
  /** A fresh id in place of a task's. */
  readonly taskId: string;
}

const none = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

const samples = {
  progress: { progress: 50, resultContent: null, error: null, errorCode: null, usage: none },
  completed: {
    progress: 100,
    resultContent: "This is a test. Ein Test, 测试, тест.",
    error: null,
    errorCode: null,
    usage: { promptTokens: 12, completionTokens: 34, totalTokens: 46 },
  },
  failed: {
    progress: 50,
    resultContent: null,
    error: "This is a test: no task has failed",
    errorCode: "upstream_error",
    usage: none,
  },
  cancelled: { progress: 50, resultContent: null, error: null, errorCode: null, usage: none },
} as const;

/** Creates the event of a test. */
function testEvent({ accountId, url, status, taskId }: TestOptions): WebhookEvent {
  return {
    ...samples[status],
    accountId,
    taskId,
    url,
    status,
    callbackId: "test",
    modelKey: "test",
    requestId: "test",
    resultUrl: null,
    isTest: true,
  };
}
