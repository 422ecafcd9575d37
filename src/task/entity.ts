/** What the task room keeps. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * A task. `state`: see state.ts. `type`: ModelType. `fingerprint`: SHA-256 of what was asked for. `hold`,
 * `cost`: nano-USD. `path`: the public path at which it was submitted in its vendor's own form; null: in ours.
 * `fence`: grows with each claim; who holds an older one can write no more. `attemptToken`: the same in every attempt;
 * null before the first. `hints`: how often somebody said that there is news of it at its vendor; `hintTaskId`: what its
 * vendor is said to call it; `isHintSure`: the vendor has said so itself, in an answer to us. `isTrailing`: it has ended,
 * but its vendor may still be at work and charge for it. `isCancelBilled`: it costs what its vendor took for it where it
 * is cancelled. `credential`: the name of the vendor's credential that submitted it, where the vendor has several; it is
 * polled and cancelled with the same one. `callPath`: the path in its call record; null: by the other facts. A trigger keeps what callers see of an
 * ended task as it is, keeps `progress` from going down, and counts the changes that callers see in `version`.
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
    hints: p.integer().default(0),
    hintTaskId: p.text().nullable(),
    isHintSure: p.boolean().default(false),
    isTrailing: p.boolean().default(false),
    isCancelBilled: p.boolean().default(false),
    callPath: p.text().nullable(),
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
    { name: "task_trailing_index", properties: ["nextTime"], where: "(is_trailing)" },
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

/** What happened to a task, in order: its changes of state, and late news of its vendor. Never changed. */
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
