/** Tables of the task room. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * An asynchronous task.
 *
 * - `state`: see state.ts. `type`: ModelType. `hold`, `cost`: nano-USD.
 * - `fingerprint`: SHA-256 of the request, for idempotency.
 * - `path`: public path of the vendor's own form by which it was submitted; null for the
 *   gateway's own form. `callPath`: path in its call record; null if it follows from the rest.
 * - `fence`: grows with each claim. A process that holds an older fence can no longer write.
 * - `attemptToken`: identical in all attempts to submit; null before the first.
 * - `notificationCount`: number of vendor notifications received.
 * - `reportedVendorTaskId`: the vendor's task ID according to a notification.
 *   `isReportedIdConfirmed`: the vendor named the ID in a reply to a request of ours.
 * - `isLateChargePending`: the task has ended, but the vendor may still run it and charge for it.
 * - `isCancelBilled`: a cancelled task costs what the vendor charged.
 * - `traceparent`: the span of its submit; null if that was not traced.
 * - `credential`: name of the vendor credential that submitted it, if the vendor has several.
 *   Polls and cancellations use the same credential.
 *
 * A trigger freezes what callers see of an ended task, keeps `progress` from decreasing, and counts
 * visible changes in `version`.
 */
export const TaskEntity = defineEntity({
  name: "TaskEntity",
  tableName: "task",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    keyId: p.uuid(),
    model: p.text(),
    type: p.smallint(),
    params: p.json().columnType("json").lazy(),
    fingerprint: p.blob().lazy(),
    callbackId: p.text().nullable(),
    callbackUrl: p.text().nullable(),
    path: p.text().nullable(),
    requestId: p.text(),
    state: p.text().default("queued"),
    progress: p.smallint().default(0),
    cancelRequested: p.boolean().default(false),
    version: p.integer().default(1),
    fence: p.integer().default(0),
    leaseUntil: p.datetime().columnType("timestamptz").nullable(),
    nextTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    deadline: p.datetime().columnType("timestamptz"),
    attemptToken: p.uuid().nullable(),
    attemptTime: p.datetime().columnType("timestamptz").nullable(),
    pollCount: p.integer().default(0),
    failureCount: p.integer().default(0),
    vendor: p.text().default(""),
    vendorModel: p.text().default(""),
    credential: p.text().default(""),
    vendorTaskId: p.text().nullable(),
    hold: p.bigint(),
    priceVersion: p.text(),
    discountBp: p.integer(),
    result: p.json().columnType("json").nullable().lazy(),
    errorCode: p.text().nullable(),
    error: p.text().nullable(),
    usage: p.json().columnType("json").nullable(),
    cost: p.bigint().nullable(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    startTime: p.datetime().columnType("timestamptz").nullable(),
    finishTime: p.datetime().columnType("timestamptz").nullable(),
    expireTime: p.datetime().columnType("timestamptz").nullable(),
    notificationCount: p.integer().default(0),
    reportedVendorTaskId: p.text().nullable(),
    isReportedIdConfirmed: p.boolean().default(false),
    isLateChargePending: p.boolean().default(false),
    isCancelBilled: p.boolean().default(false),
    callPath: p.text().nullable(),
    traceparent: p.text().nullable(),
  },
  uniques: [
    { name: "task_account_id_callback_id_unique", properties: ["accountId", "callbackId"] },
  ],
  indexes: [
    { name: "task_account_id_id_index", properties: ["accountId", "id"] },
    { name: "task_request_id_index", properties: ["requestId", "id"] },
    { name: "task_queued_index", properties: ["accountId", "id"], where: "(state = 'queued')" },
    {
      name: "task_next_time_index",
      properties: ["nextTime"],
      where: "(state in ('submitting', 'submit_unknown', 'running', 'finalizing'))",
    },
    {
      name: "task_attempt_token_index",
      properties: ["attemptToken"],
      where: "(attempt_token is not null)",
    },
    { name: "task_late_charge_index", properties: ["nextTime"], where: "(is_late_charge_pending)" },
  ],
  checks: [
    {
      name: "task_state_check",
      expression:
        "state in ('queued', 'submitting', 'submit_unknown', 'running', 'finalizing', 'completed', 'failed', 'cancelled')",
    },
    {
      name: "task_progress_check",
      expression: "progress >= 0 and progress <= 100 and (progress = 100) = (state = 'completed')",
    },
    {
      name: "task_ended_check",
      expression:
        "(state in ('completed', 'failed', 'cancelled')) = (finish_time is not null) and (finish_time is null) = (cost is null)",
    },
    { name: "task_error_check", expression: "(state = 'failed') = (error_code is not null)" },
    { name: "task_result_check", expression: "(state = 'completed') = (result is not null)" },
    {
      name: "task_cost_check",
      expression:
        "cost >= 0 and (cost = 0 or state = 'completed' or state = 'cancelled' and is_cancel_billed)",
    },
    { name: "task_hold_check", expression: "hold >= 0" },
  ],
});

/** Changes of a task's state in order, and late results of its vendor. Never changed. */
export const TaskEventEntity = defineEntity({
  name: "TaskEventEntity",
  tableName: "task_event",
  properties: {
    id: p.bigint().primary().autoincrement(),
    taskId: p.uuid(),
    time: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    kind: p.text(),
    state: p.text(),
    detail: p.json().columnType("json").nullable(),
  },
  indexes: [{ name: "task_event_task_id_id_index", properties: ["taskId", "id"] }],
});

/** The tables of the task room. */
export const taskEntities = [TaskEntity, TaskEventEntity] as const;
