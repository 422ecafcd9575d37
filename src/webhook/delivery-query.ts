/** Reads deliveries and receivers for the service, and turns rows into messages of the contract. */
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
  type Endpoint,
  EndpointSchema,
  EndpointState,
  type WebhookStatus,
} from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { EventKind } from "./schedule.ts";

/** A delivery with what its event says. */
export interface DeliveryRow {
  readonly id: string;
  readonly account_id: string;
  readonly lane: string;
  readonly callback_id: string;
  readonly status: WebhookStatus;
  readonly progress: number;
  readonly sequence: number;
  readonly kind: number;
  readonly url: string;
  readonly state: number;
  readonly attempts: number;
  readonly create_time: Date;
  readonly due: Date;
  readonly end_time: Date | null;
  /** Whether its receiver is dead. */
  readonly is_parked: boolean;
}

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

/** A try, as the database has it. */
export interface AttemptRow {
  readonly number: number;
  readonly start_time: Date;
  readonly outcome: AttemptOutcome;
  readonly status: number;
  readonly address_class: AddressClass;
  readonly dns_ms: number;
  readonly connect_ms: number;
  readonly tls_ms: number;
  readonly first_byte_ms: number;
  readonly total_ms: number;
  readonly answer: Buffer;
}

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
    ...(row.status !== 0 && { status: row.status }),
    addressClass: row.address_class,
    dnsDuration: stepDuration(row.dns_ms),
    connectDuration: stepDuration(row.connect_ms),
    tlsDuration: stepDuration(row.tls_ms),
    firstByteDuration: stepDuration(row.first_byte_ms),
    totalDuration: stepDuration(row.total_ms),
    answer: row.answer.toString(),
  });
}

/** Undefined: the step was not reached, or took less than a millisecond. */
function stepDuration(ms: number): Duration | undefined {
  return ms === 0 ? undefined : durationFromMs(ms);
}

/** A receiver, as the database has it. */
export interface EndpointRow {
  readonly id: string;
  readonly account_id: string;
  readonly origin: string;
  readonly failures: number;
  readonly failing_since: Date | null;
  readonly open_until: Date | null;
  readonly dead_time: Date | null;
  readonly success_time: Date | null;
  readonly failure_time: Date | null;
  readonly waiting: number;
}

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
