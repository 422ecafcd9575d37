/** The rows of the table `task`, in its column names. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { RareQuantities } from "../config/price-units.ts";
import type { RowOf } from "../db/row.ts";
import type { TaskEntity } from "./entity.ts";
import type { TaskState } from "./state.ts";

/**
 * A row of the table `task`, with durations by the database's clock. The entity describes the
 * columns.
 */
export type TaskRow = Omit<
  RowOf<typeof TaskEntity>,
  "fingerprint" | "lease_until" | "next_time" | "deadline" | "attempt_time"
> & {
  readonly type: ModelType;
  readonly state: TaskState;
  /** Null: long parameters are not read with a claim; {@link WholeTask} has them. */
  readonly params: JsonObject | null;
  readonly result: StoredResultJson | null;
  readonly usage: StoredUsageJson | null;
  /** Time until its deadline; negative after it. */
  readonly left_ms: number;
  /**
   * Distinguishes one submit from another: the time from its beginning to the deadline, as
   * PostgreSQL writes it. Both are moved if the database's clock is set. Null before the first.
   */
  readonly attempt: string | null;
  /** Time since its end, otherwise since its last submit began; null before the first. */
  readonly age_ms: number | null;
};

/** A task with its parameters. */
export interface WholeTask extends TaskRow {
  readonly params: JsonObject;
}

/** The JSON of the column `result`. */
export interface StoredResultJson {
  readonly files: readonly StoredFileJson[];
  readonly text?: string;
}

/** A file of a result. */
export interface StoredFileJson {
  readonly url: string;
  readonly contentType: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** The JSON of the column `usage`: the charged quantities of the task. */
export interface StoredUsageJson extends RareQuantities {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  /** Number of generated images. None by default. */
  readonly images?: number;
  /** Seconds of generated video or audio. None by default. */
  readonly seconds?: number;
}

/** The columns of a {@link WholeTask}, for `select` and `returning` with the table name `task`. */
export const taskColumns = `task.id, task.account_id, task.key_id, task.model, task.type, task.params,
  task.callback_id, task.callback_url, task.path, task.request_id, task.state, task.progress, task.cancel_requested,
  task.version, task.fence, task.attempt_token, task.poll_count, task.failure_count, task.vendor,
  task.vendor_model, task.credential, task.vendor_task_id, task.hold, task.price_version, task.discount_bp, task.result,
  task.error_code, task.error, task.usage, task.cost, task.create_time, task.start_time, task.finish_time,
  task.expire_time, task.notification_count, task.reported_vendor_task_id,
  task.is_reported_id_confirmed, task.is_late_charge_pending, task.is_cancel_billed,
  task.call_path, task.traceparent,
  (task.deadline - task.attempt_time)::text as attempt,
  ceil(extract(epoch from task.deadline - clock_timestamp()) * 1000)::float8 as left_ms,
  floor(extract(epoch from clock_timestamp() - greatest(task.attempt_time, task.finish_time)) * 1000)::float8 as age_ms`;

/** The same without the parameters, which can be long. */
export const summaryColumns = taskColumns.replace("task.params,", "");

/**
 * Claims omit parameters of at least this stored size in bytes: inline images can have megabytes,
 * and most steps do not need them.
 */
const longBytes = 16_384;

/** The columns of a {@link TaskRow}. */
export const workColumns = taskColumns.replace(
  "task.params,",
  `case when pg_column_size(task.params) < ${longBytes} then task.params end as params,`,
);
