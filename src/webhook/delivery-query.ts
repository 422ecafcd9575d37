/** Reads deliveries and receivers for the service, and turns rows into messages of the contract. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type AddressClass,
  type Attempt,
  type AttemptOutcome,
  AttemptSchema,
  type Delivery,
  DeliverySchema,
  DeliveryState,
  type Endpoint,
  EndpointSchema,
  EndpointState,
  type WebhookStatus,
} from "../../gen/uas/webhook/v1/webhook_pb.ts";
import type { RowOf } from "../db/row.ts";
import type {
  WebhookAttemptEntity,
  WebhookDeliveryEntity,
  WebhookEndpointEntity,
  WebhookEventEntity,
} from "./entity.ts";
import { EventKind } from "./schedule.ts";

/** A delivery with what its event says. `is_parked`: its receiver is dead. */
export type DeliveryRow = RowOf<
  typeof WebhookDeliveryEntity,
  "id" | "account_id" | "lane" | "kind" | "state" | "attempts" | "due" | "end_time"
> &
  RowOf<
    typeof WebhookEventEntity,
    "callback_id" | "progress" | "sequence" | "url" | "create_time"
  > & { readonly status: WebhookStatus; readonly is_parked: boolean };

/** Deliveries as rows: to be followed by conditions on `delivery`, `event` and `endpoint`. */
export const deliverySql = `
  select delivery.id, delivery.account_id, delivery.lane, delivery.state, delivery.attempts, delivery.due,
    delivery.end_time, delivery.kind, event.callback_id, event.status, event.progress, event.sequence, event.url,
    event.create_time, delivery.state = 1 and endpoint.dead_time is not null as is_parked
  from webhook_delivery delivery
    join webhook_event event on event.id = delivery.id
    left join webhook_endpoint endpoint on endpoint.id = delivery.endpoint_id`;

/** What state a row must be in, by the state that is asked for: SQL without parameters. */
export const stateConditions: Readonly<Record<DeliveryState, string>> = {
  [DeliveryState.UNSPECIFIED]: "true",
  [DeliveryState.PENDING]: "delivery.state = 1 and endpoint.dead_time is null",
  [DeliveryState.SENDING]: "delivery.state = 2",
  [DeliveryState.DELIVERED]: "delivery.state = 3",
  [DeliveryState.FAILED]: "delivery.state = 4",
  [DeliveryState.DROPPED]: "delivery.state = 5",
  [DeliveryState.PARKED]: "delivery.state = 1 and endpoint.dead_time is not null",
};

/** A delivery. */
export function deliveryMessage(row: DeliveryRow): Delivery {
  const state = row.is_parked ? DeliveryState.PARKED : (row.state as DeliveryState);
  return create(DeliverySchema, {
    deliveryId: row.id,
    accountId: row.account_id,
    taskId: row.lane,
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

/** An attempt, as the database has it. */
export type AttemptRow = RowOf<typeof WebhookAttemptEntity> & {
  readonly outcome: AttemptOutcome;
  readonly address_class: AddressClass;
};

/** The newest 100 of $1, oldest first. */
export const attemptSql = `select * from (
    select * from webhook_attempt where delivery_id = $1 order by number desc limit 100) newest
  order by number`;

/** A try. */
export function attemptMessage(row: AttemptRow): Attempt {
  return create(AttemptSchema, {
    number: row.number,
    startTime: timestampFromDate(row.start_time),
    outcome: row.outcome,
    status: row.status,
    addressClass: row.address_class,
    dnsMs: row.dns_ms,
    connectMs: row.connect_ms,
    tlsMs: row.tls_ms,
    firstByteMs: row.first_byte_ms,
    totalMs: row.total_ms,
    answer: row.answer.toString(),
  });
}

/** A receiver, as the database has it. `waiting`: how many of its deliveries wait. */
export type EndpointRow = RowOf<typeof WebhookEndpointEntity> & { readonly waiting: number };

/** Receivers as rows: to be followed by conditions on `endpoint`. */
export const endpointSql = `
  select endpoint.*, (select count(*)::int from webhook_delivery delivery
    where delivery.endpoint_id = endpoint.id and delivery.state = 1) as waiting
  from webhook_endpoint endpoint`;

/** A receiver. */
export function endpointMessage(row: EndpointRow): Endpoint {
  const state = endpointState(row);
  const time = (date: Date | null) => date && timestampFromDate(date);
  const times = {
    failingSince: time(row.failing_since),
    nextProbeTime: state === EndpointState.FAILING ? time(row.open_until) : null,
    successTime: time(row.success_time),
    failureTime: time(row.failure_time),
  };
  return create(EndpointSchema, {
    accountId: row.account_id,
    origin: row.origin,
    state,
    failureCount: row.failures,
    ...Object.fromEntries(Object.entries(times).filter(([, value]) => value !== null)),
    waitingCount: row.waiting,
  });
}

function endpointState({ dead_time: deadTime, open_until: openUntil }: EndpointRow): EndpointState {
  if (deadTime !== null) return EndpointState.DEAD;
  return openUntil === null ? EndpointState.HEALTHY : EndpointState.FAILING;
}
