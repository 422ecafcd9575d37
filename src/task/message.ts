/** Tasks as the contract shows them. */
import { errorCodeOf } from "../core/error-words.ts";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Task, TaskSchema } from "../../gen/uas/task/v1/task_pb.ts";
import type { SeenTask } from "./store.ts";
import { publicState } from "./state.ts";

/** What a caller may see. */
export interface View {
  /** Whether it is the operator. */
  readonly isOperator: boolean;
}

/** The task. */
export function taskMessage(row: SeenTask, { isOperator }: View): Task {
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
    ...(row.cost !== null && { cost: usd(row.cost) }),
    held: usd(row.hold),
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

function usd(nanos: string) {
  return { currencyCode: "USD", amountNanos: BigInt(nanos) };
}

/** The entity tag of a task as it is now. */
export function etagOf({ version }: SeenTask): string {
  return `"${version}"`;
}

/** When to look again at a task that runs, in seconds: soon at first. */
export function pollAfterSeconds({ create_time: since }: SeenTask, nowMs: number): number {
  const ageMs = nowMs - since.getTime();
  if (ageMs < 30_000) return 2;
  return ageMs < 120_000 ? 5 : 10;
}
