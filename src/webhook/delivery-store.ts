/**
 * SQL of deliveries. For the dispatcher: finds receivers with due deliveries, claims deliveries and
 * records attempts, in one round trip each, under locks. For the RPCs: lists deliveries with
 * filters over three tables.
 */
import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { InferEntity } from "@mikro-orm/core";
import type { Pool } from "pg";
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
import {
  webhookBreakerFailures,
  webhookDeadMs,
  webhookProbeMs,
  webhookProbeMsMax,
  webhookProgressMs,
} from "../core/limits.ts";
import type { RowOf } from "../db/row.ts";
import type { WebhookAttemptEntity, WebhookDeliveryEntity, WebhookEventEntity } from "./entity.ts";
import { EventKind, retryPausesMs } from "./schedule.ts";
import { isRotatingSql, type SecretRow } from "./secrets.ts";

/** A receiver with a pending delivery. */
export type DueRow = RowOf<typeof WebhookDeliveryEntity, "endpoint_id" | "account_id">;

/**
 * A delivery that this process has claimed, with its event and its account's secret. `attempts`:
 * the number of this attempt. `series`: its position in the retry schedule, from 1. `sealed`: null
 * if the account has no secret yet. `is_probe`: it probes a receiver whose breaker is open.
 */
export type ClaimedRow = DueRow &
  RowOf<typeof WebhookDeliveryEntity, "id" | "attempts" | "series"> &
  RowOf<typeof WebhookEventEntity, "url" | "body" | "traceparent"> &
  Omit<SecretRow, "sealed"> & {
    readonly kind: 1 | 2 | 3;
    readonly sealed: Buffer | null;
    readonly is_probe: boolean;
  };

/**
 * The receivers after $1 with pending deliveries, at most $2, and whether they have one to send
 * now. A loose index scan visits each receiver once, however many deliveries it has.
 */
export const scanStatement = {
  name: "webhook_scan",
  text: `
    with recursive waiting as (
      (select endpoint_id, account_id, due from webhook_delivery
        where state = 1 and endpoint_id > $1 order by endpoint_id, due limit 1)
      union all
      select next.* from waiting cross join lateral (
        select endpoint_id, account_id, due from webhook_delivery
        where state = 1 and endpoint_id > waiting.endpoint_id order by endpoint_id, due limit 1) next
    ), page as (select * from waiting limit $2)
    select page.endpoint_id, page.account_id,
      page.due <= now() and (
        endpoint.id is null
        or (endpoint.dead_time is null and coalesce(endpoint.open_until, now()) <= now())
        or exists (select from webhook_delivery urgent where urgent.endpoint_id = page.endpoint_id
          and urgent.state = 1 and urgent.is_urgent)
      ) as is_ready
    from page left join webhook_endpoint endpoint on endpoint.id = page.endpoint_id
    order by page.endpoint_id`,
} as const;

/**
 * SQL: whether a `delivery` is progress that follows the task's last one too soon. That one has
 * ended: a task has one delivery in progress at a time. The interval counts from its end, since a
 * receiver may get it at any time until then.
 */
const isTooSoon = `delivery.kind = 1 and exists (
  select from webhook_event earlier join webhook_delivery sent on sent.id = earlier.id
  where earlier.task_id = delivery.task_id and earlier.kind = 1 and sent.state in (3, 4)
    and sent.end_time > now() - interval '${webhookProgressMs} ms')`;

/**
 * Claims deliveries. $1: receivers, $2: number for each, $3: the lease in milliseconds.
 *
 * A receiver whose breaker is open is probed with one delivery, by one process: a probe postpones
 * the next one. Urgent deliveries ignore the breaker. If a delivery of a task is in progress, no
 * other of that task is claimed, also if another process has just claimed it. The task's next
 * delivery is only enqueued or released by a transaction that waited for the first, and a unique
 * index would refuse it.
 */
export const claimStatement = {
  name: "webhook_claim",
  text: `
    with wanted as materialized (
      select wanted.*, endpoint.open_until,
        coalesce(endpoint.dead_time is not null or endpoint.open_until > now(), false) as is_closed
      from unnest($1::uuid[], $2::int[]) as wanted(endpoint_id, slots)
      left join webhook_endpoint endpoint on endpoint.id = wanted.endpoint_id
    ), probed as (
      update webhook_endpoint set open_until = now() + $3 * interval '1 ms'
      where id in (
        select id from webhook_endpoint endpoint join wanted on wanted.endpoint_id = endpoint.id
        where endpoint.dead_time is null and endpoint.open_until <= now()
          and exists (select from webhook_delivery delivery where delivery.endpoint_id = endpoint.id
            and delivery.state = 1 and delivery.due <= now())
        for update of endpoint skip locked)
      returning id
    ), open as (
      select wanted.endpoint_id, probed.id is not null as is_probe,
        case when probed.id is null then wanted.slots else 1 end as slots
      from wanted left join probed on probed.id = wanted.endpoint_id
      where not wanted.is_closed and (wanted.open_until is null or probed.id is not null)
    ), picked as (
      select delivery.id, open.is_probe from open cross join lateral (
        select id from webhook_delivery delivery
        where delivery.endpoint_id = open.endpoint_id and state = 1 and due <= now()
          and not exists (select from webhook_delivery other where other.task_id = delivery.task_id and other.state = 2)
          and not (${isTooSoon})
        order by due limit open.slots for update skip locked) delivery
      union all
      select delivery.id, false from wanted cross join lateral (
        select id from webhook_delivery delivery
        where delivery.endpoint_id = wanted.endpoint_id and state = 1 and is_urgent and due <= now()
          and not exists (select from webhook_delivery other where other.task_id = delivery.task_id and other.state = 2)
        order by due limit wanted.slots for update skip locked) delivery
      where not exists (select from open where open.endpoint_id = wanted.endpoint_id)
    )
    update webhook_delivery delivery set state = 2, is_urgent = false,
      attempts = delivery.attempts + 1, series = delivery.series + 1,
      claim_time = now(), lease_until = now() + $3 * interval '1 ms'
    from picked
      join webhook_event event on event.id = picked.id
      left join webhook_secret secret on secret.account_id = event.account_id
    where delivery.id = picked.id and delivery.state = 1
    returning delivery.id, delivery.account_id, delivery.endpoint_id, delivery.kind, delivery.attempts,
      delivery.series, event.url, event.body, event.traceparent, picked.is_probe, secret.sealed, secret.previous,
      coalesce(secret.is_promoted, true) as is_promoted, coalesce(${isRotatingSql}, false) as is_rotating`,
} as const;

/**
 * Records the attempt, and updates its delivery unless another process has claimed that since. $1:
 * id, $2: number, $3: state, $4: the pause in milliseconds, $5 to $14: the attempt.
 */
const recordSql = `
  ended as (
    update webhook_delivery set state = $3::smallint, due = now() + $4::bigint * interval '1 ms', lease_until = null,
      end_time = case when $3::smallint = 1 then null else now() end
    where id = $1 and state = 2 and attempts = $2
  ), tried as (
    insert into webhook_attempt (delivery_id, number, start_time, outcome, status, address_class, dns_ms,
      connect_ms, tls_ms, first_byte_ms, total_ms, answer)
    values ($1, $2, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    on conflict (delivery_id, number) do update set
      outcome = excluded.outcome, status = excluded.status, address_class = excluded.address_class,
      dns_ms = excluded.dns_ms, connect_ms = excluded.connect_ms, tls_ms = excluded.tls_ms,
      first_byte_ms = excluded.first_byte_ms, total_ms = excluded.total_ms, answer = excluded.answer
  )`;

/**
 * Records an attempt, by its effect on the receiver; `neutral` does not change its breaker. $15 to
 * $17: id, account, origin of the receiver; $18, of failures: whether it was a probe.
 */
export const recordStatements = {
  neutral: { name: "webhook_record", text: `with ${recordSql} select false as is_dead` },
  success: {
    name: "webhook_record_success",
    text: `with ${recordSql}
      insert into webhook_endpoint as endpoint (id, account_id, origin, success_time)
      values ($15, $16, $17, now())
      on conflict (id) do update set failures = 0, probes = 0, failing_since = null, open_until = null,
        dead_time = null, success_time = now()
      where endpoint.failures > 0 or endpoint.open_until is not null or endpoint.success_time is null
        or endpoint.success_time < now() - interval '10 s'
      returning false as is_dead`,
  },
  failure: {
    name: "webhook_record_failure",
    text: `with ${recordSql}
      insert into webhook_endpoint as endpoint (id, account_id, origin, failures, failing_since, failure_time)
      values ($15, $16, $17, 1, now(), now())
      on conflict (id) do update set
        failures = endpoint.failures + 1,
        failing_since = coalesce(endpoint.failing_since, now()),
        failure_time = now(),
        probes = endpoint.probes + $18::boolean::int,
        open_until = case
          when $18 then now() + least(
            ${webhookProbeMs} * 2 ^ least(endpoint.probes + 1, 20), ${webhookProbeMsMax}) * interval '1 ms'
          when endpoint.open_until is not null then endpoint.open_until
          when endpoint.failures + 1 >= ${webhookBreakerFailures} then now() + interval '${webhookProbeMs} ms'
        end,
        dead_time = coalesce(endpoint.dead_time,
          case when endpoint.failing_since < now() - interval '${webhookDeadMs} ms' then now() end)
      returning coalesce(dead_time = now(), false) as is_dead`,
  },
} as const;

/**
 * Releases deliveries whose lease has expired. Terminal events are sent again, progress is not:
 * R-HOOK-3 gives it one attempt.
 */
const recoverSql = `
  with lost as (
    select id, claim_time, attempts, kind = 2 and series < ${retryPausesMs.length + 1} as is_again
    from webhook_delivery where state = 2 and lease_until < clock_timestamp()
    for update skip locked
  ), moved as (
    update webhook_delivery delivery set lease_until = null, due = now(),
      state = case when lost.is_again then 1 else 4 end,
      end_time = case when lost.is_again then null else now() end
    from lost where delivery.id = lost.id
    returning delivery.endpoint_id, delivery.account_id
  ), tried as (
    insert into webhook_attempt (delivery_id, number, start_time, outcome, status, address_class, dns_ms,
      connect_ms, tls_ms, first_byte_ms, total_ms, answer)
    select id, attempts, claim_time, 12, 0, 0, 0, 0, 0, 0, 0, '' from lost
    on conflict do nothing
  )
  select endpoint_id, account_id from moved`;

/** Frees deliveries that dead processes had claimed. Returns their receivers. */
export async function recoverLost(pool: Pool): Promise<readonly DueRow[]> {
  return (await pool.query<DueRow>(recoverSql)).rows;
}

/**
 * Reschedules a claimed delivery without an attempt. $1: id, $2: number, $3: the pause in
 * milliseconds.
 */
export const returnSql = `update webhook_delivery set state = 1, lease_until = null,
    attempts = attempts - 1, series = series - 1, due = now() + $3 * interval '1 ms'
  where id = $1 and attempts = $2 and state = 2`;

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
type AttemptRow = InferEntity<typeof WebhookAttemptEntity>;

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

/** Undefined if the step was not reached, or took less than a millisecond. */
function stepDuration(ms: number): Duration | undefined {
  return ms === 0 ? undefined : durationFromMs(ms);
}
