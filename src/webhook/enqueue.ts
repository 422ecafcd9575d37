/**
 * Enqueues webhooks in the transaction of the change that they report. So no webhook is lost, and
 * none reports a change that was rolled back. SQL: on the connection of a task's change.
 */
import { hash } from "node:crypto";
import { WebhookStatus } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { newIdAt } from "../core/uuid.ts";
import type { Transaction } from "../db/pool/transaction.ts";
import { freezePayload, type WebhookPayload } from "./payload.ts";
import { type Json, safeText, safeValue, writeSafe } from "./safe-json.ts";
import { EventKind, type EventKindValue } from "./schedule.ts";

/** An event for a receiver. */
export interface WebhookEvent extends Omit<WebhookPayload, "facts" | "time"> {
  /** Time of the event. Now by default, by the database's clock. */
  readonly time?: Date | undefined;
  readonly accountId: string;
  /** A UUID. The events of a task are sent one by one, in the order in which they were enqueued. */
  readonly taskId: string;
  /** The receiver's address, which `readPublicUrl` accepted. */
  readonly url: string;
  readonly modelKey: string;
  /** The request id of the submit. */
  readonly requestId: string;
  /** Whether it is a test: sent once, and not about a task. Default false. */
  readonly isTest?: boolean;
  /** The span of the task's submit; null if that was not traced. Default null. */
  readonly traceparent?: string | null;
}

/** The channel that notifies every process of a due delivery: `<endpoint id> <account id>`. */
export const dueChannel = "webhook_due";

const numbers = {
  progress: WebhookStatus.PROGRESS,
  completed: WebhookStatus.COMPLETED,
  failed: WebhookStatus.FAILED,
  cancelled: WebhookStatus.CANCELLED,
} as const;

const sql = {
  sent: `
    select coalesce(max(event.sequence), 0) + 1 as sequence,
      coalesce(max(event.progress) filter (where event.kind = 1), -1) as progress,
      coalesce(bool_or(event.kind = 2), false) as is_over, now() as now
    from webhook_event event
    where event.task_id = $1`,
  drop: `update webhook_delivery set state = 5, end_time = now()
    where task_id = $1 and state = 1 and kind = 1`,
  insert: `
    with event as (
      insert into webhook_event
        (id, account_id, task_id, endpoint_id, create_time, sequence, kind, status, progress, callback_id, url, body,
          traceparent)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, decode($12, 'hex'), $13)
      returning id, account_id, task_id, endpoint_id, kind
    ), delivery as (
      insert into webhook_delivery (id, account_id, task_id, endpoint_id, kind, is_urgent)
      select id, account_id, task_id, endpoint_id, kind, kind = 3 from event
    )
    select pg_notify('${dueChannel}', endpoint_id || ' ' || account_id) from event`,
} as const;

interface TaskEventsRow {
  readonly sequence: number;
  readonly progress: number;
  readonly is_over: boolean;
  readonly now: Date;
}

/**
 * Enqueues an event in an open transaction: it is sent as soon as that commits. Call it under the
 * lock that orders the task's changes: the lock also orders its events.
 *
 * Progress that is not higher than before, and any event after the end, is not enqueued. Pending
 * older progress of the task is dropped.
 *
 * @returns the delivery's id; undefined if nothing was enqueued.
 */
export async function enqueueWebhook(
  transaction: Transaction,
  event: WebhookEvent,
): Promise<string | undefined> {
  const { taskId, progress } = event;
  const { rows } = await transaction.query(sql.sent, [taskId]);
  const [sent] = rows as TaskEventsRow[];
  if (sent === undefined || sent.is_over) return undefined;
  const kind = kindOf(event);
  if (kind === EventKind.PROGRESS && progress <= sent.progress) return undefined;
  if (sent.sequence > 1) await transaction.query(sql.drop, [taskId]);
  const { sequence, now } = sent;
  const id = newIdAt(now.getTime());
  const values = rowOf({ ...event, time: event.time ?? now }, { id, kind, sequence });
  await transaction.query(sql.insert, values);
  return id;
}

/** An alert of an account, about no task. */
export interface AlertEvent {
  /** The alert's id, a UUID: it has one event. */
  readonly id: string;
  readonly accountId: string;
  /** The receiver's address, which `readPublicUrl` accepted. */
  readonly url: string;
  /** Such as `budget.threshold`. */
  readonly type: string;
  readonly time: Date;
  readonly data: { readonly [name: string]: Json };
}

/**
 * Enqueues an alert in an open transaction. It is delivered as the end of a task is: at least once,
 * with the same retries, signatures and log.
 *
 * @returns the delivery's id
 */
export async function enqueueAlert(
  transaction: Transaction,
  { id: alertId, accountId, url, type, time, data }: AlertEvent,
): Promise<string> {
  const id = newIdAt(time.getTime());
  const body = { data: { ...data, event_id: id }, timestamp: time.toISOString(), type };
  const bytes = writeSafe(safeValue(body).value);
  const endpointId = endpointIdOf(accountId, originOf(url));
  const event = [id, accountId, alertId, endpointId, time.toISOString(), 1, EventKind.TERMINAL];
  const shown = [WebhookStatus.ALERT, 0, type, url, bytes.toString("hex"), null];
  await transaction.query(sql.insert, [...event, ...shown]);
  return id;
}

function kindOf({ isTest, status }: WebhookEvent): EventKindValue {
  if (isTest) return EventKind.TEST;
  return status === "progress" ? EventKind.PROGRESS : EventKind.TERMINAL;
}

function rowOf(
  event: WebhookEvent & Pick<WebhookPayload, "time">,
  { id, kind, sequence }: { readonly id: string; readonly kind: number; readonly sequence: number },
): unknown[] {
  const { accountId, taskId, url, modelKey, requestId } = event;
  const facts = { eventId: id, modelKey, requestId, sequence, taskId };
  const extra = { ...event.extra, ...(event.isTest && { test: true }) };
  const { bytes } = freezePayload({ ...event, facts, extra });
  return [
    id,
    accountId,
    taskId,
    endpointIdOf(accountId, originOf(url)),
    event.time.toISOString(),
    sequence,
    kind,
    numbers[event.status],
    event.progress,
    // As in the payload, so that a search with the received id finds it.
    safeText(event.callbackId),
    url,
    bytes.toString("hex"),
    event.traceparent ?? null,
  ];
}

/** The origin of a callback address: scheme, host and port. */
export function originOf(url: string): string {
  return new URL(url).origin;
}

/**
 * The id of a receiver: a hash of its account and origin, so that no lookup is needed. Its
 * deliveries share one breaker and one limit.
 */
export function endpointIdOf(accountId: string, origin: string): string {
  const hex = hash("sha256", `${accountId}\n${origin}`);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return [...parts, hex.slice(20, 32)].join("-");
}
