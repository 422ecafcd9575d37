/** Turns tasks into messages of the contract. */
import { errorCodeOf } from "../core/error-words.ts";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Task, TaskSchema } from "../../gen/uas/task/v1/task_pb.ts";
import { money } from "../core/money.ts";
import type { TaskSummary } from "./store.ts";
import { publicState } from "./state.ts";

/** The reader of a task. */
export interface View {
  /** Whether the vendor's task id is shown. */
  readonly isOperator: boolean;
}

/** A task as a message. */
export function taskMessage(row: TaskSummary, { isOperator }: View): Task {
  const { status, stage } = publicState(row.state);
  const { files = [], text } = row.result ?? {};
  const times = {
    createTime: row.create_time,
    startTime: row.start_time,
    finishTime: row.finish_time,
    expireTime: row.expire_time,
  };
  return create(TaskSchema, {
    taskId: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    modelKey: row.model,
    type: row.type,
    callbackId: row.callback_id ?? "",
    callbackUrl: row.callback_url ?? "",
    status,
    stage,
    progress: row.progress,
    files: files.map((file) => ({ ...file, sizeBytes: BigInt(file.sizeBytes) })),
    ...(text !== undefined && { resultContent: text }),
    errorCode: errorCodeOf(row.error_code ?? ""),
    errorMessage: row.error ?? "",
    ...(row.usage !== null && { usage: row.usage }),
    ...(row.cost !== null && { cost: money(BigInt(row.cost)) }),
    held: money(BigInt(row.hold)),
    priceVersion: row.price_version,
    cancelRequested: row.cancel_requested,
    requestId: row.request_id,
    vendor: row.vendor,
    vendorTaskId: isOperator ? (row.vendor_task_id ?? "") : "",
    version: row.version,
    ...Object.fromEntries(
      Object.entries(times).flatMap(([name, time]) =>
        time === null ? [] : [[name, timestampFromDate(time)]],
      ),
    ),
  });
}

/** The entity tag of a task as it is now. */
export function etagOf({ version }: TaskSummary): string {
  return `"${version}"`;
}

/** The suggested pause before the next poll of a running task, in seconds: short at first. */
export function pollAfterSeconds({ create_time: since }: TaskSummary, nowMs: number): number {
  const ageMs = nowMs - since.getTime();
  if (ageMs < 30_000) return 2;
  return ageMs < 120_000 ? 5 : 10;
}
