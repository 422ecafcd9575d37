/** SQL that reads deliveries, and their messages: a list is filtered by what three tables say. */
import type { InferEntity } from "@mikro-orm/core";
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate, type Duration } from "@bufbuild/protobuf/wkt";
import {
  type AddressClass,
  type Attempt,
  type AttemptOutcome,
  AttemptSchema,
  type Delivery,
  DeliverySchema,
  DeliveryState,
  type WebhookStatus,
} from "../../gen/uas/webhook/v1/webhook_pb.ts";
import type { RowOf } from "../db/row.ts";
import type { WebhookAttemptEntity, WebhookDeliveryEntity, WebhookEventEntity } from "./entity.ts";
import { EventKind } from "./schedule.ts";

/** A delivery with columns of its event. `is_parked`: its receiver is dead. */
export type DeliveryRow = RowOf<
  typeof WebhookDeliveryEntity,
  "id" | "account_id" | "task_id" | "kind" | "state" | "attempts" | "due" | "end_time"
> &
  RowOf<
    typeof WebhookEventEntity,
    "callback_id" | "progress" | "sequence" | "url" | "create_time"
  > & { readonly status: WebhookStatus; readonly is_parked: boolean };

/** Selects {@link DeliveryRow}s: conditions on `delivery`, `event` and `endpoint` follow. */
export const deliverySql = `
  select delivery.id, delivery.account_id, delivery.task_id, delivery.state, delivery.attempts, delivery.due,
    delivery.end_time, delivery.kind, event.callback_id, event.status, event.progress, event.sequence, event.url,
    event.create_time, delivery.state = 1 and endpoint.dead_time is not null as is_parked
  from webhook_delivery delivery
    join webhook_event event on event.id = delivery.id
    left join webhook_endpoint endpoint on endpoint.id = delivery.endpoint_id`;

/** The SQL condition of each delivery state, without parameters. */
export const stateConditions: Readonly<Record<DeliveryState, string>> = {
  [DeliveryState.UNSPECIFIED]: "true",
  [DeliveryState.PENDING]: "delivery.state = 1 and endpoint.dead_time is null",
  [DeliveryState.SENDING]: "delivery.state = 2",
  [DeliveryState.DELIVERED]: "delivery.state = 3",
  [DeliveryState.FAILED]: "delivery.state = 4",
  [DeliveryState.DROPPED]: "delivery.state = 5",
  [DeliveryState.PARKED]: "delivery.state = 1 and endpoint.dead_time is not null",
};

/** A delivery as a message. */
export function deliveryMessage(row: DeliveryRow): Delivery {
  const state = row.is_parked ? DeliveryState.PARKED : (row.state as DeliveryState);
  return create(DeliverySchema, {
    deliveryId: row.id,
    accountId: row.account_id,
    taskId: row.task_id,
    callbackId: row.callback_id,
    status: row.status,
    progress: row.progress,
    sequence: row.sequence,
    url: row.url,
    state,
    attemptCount: row.attempts,
    createTime: timestampFromDate(row.create_time),
    ...(state === DeliveryState.PENDING && { nextAttemptTime: timestampFromDate(row.due) }),
    ...(row.end_time && { endTime: timestampFromDate(row.end_time) }),
    isTest: row.kind === EventKind.TEST,
  });
}

/** A row of an attempt. */
export type AttemptRow = InferEntity<typeof WebhookAttemptEntity>;

/** An attempt as a message. */
export function attemptMessage(row: AttemptRow): Attempt {
  return create(AttemptSchema, {
    number: row.number,
    startTime: timestampFromDate(row.startTime),
    outcome: row.outcome as AttemptOutcome,
    ...(row.status !== 0 && { status: row.status }),
    addressClass: row.addressClass as AddressClass,
    dnsDuration: stepDuration(row.dnsMs),
    connectDuration: stepDuration(row.connectMs),
    tlsDuration: stepDuration(row.tlsMs),
    firstByteDuration: stepDuration(row.firstByteMs),
    totalDuration: stepDuration(row.totalMs),
    answer: Buffer.from(row.answer).toString(),
  });
}

/** Undefined: the step was not reached, or took less than a millisecond. */
function stepDuration(ms: number): Duration | undefined {
  return ms === 0 ? undefined : durationFromMs(ms);
}
