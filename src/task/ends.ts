/** Why tasks end without a result. */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { ErrorCode } from "../errors.ts";
import type { TaskOutcome } from "../vendor/task.ts";
import type { MoveColumns } from "./move.ts";

/** Codes that a task can fail with. */
export type FailureCode =
  | typeof ErrorCode.CONTENT_REJECTED
  | typeof ErrorCode.INVALID_PARAMETERS
  | typeof ErrorCode.UPSTREAM_ERROR
  | typeof ErrorCode.UPSTREAM_SUBMIT_UNKNOWN
  | typeof ErrorCode.TASK_TIMEOUT
  | typeof ErrorCode.RESULT_UNAVAILABLE
  | typeof ErrorCode.INTERNAL_ERROR;

/** Why a task fails. */
export interface Failure {
  readonly code: FailureCode;
  /** For the customer. */
  readonly message: string;
  /** What the vendor made all the same: it takes its money. Default: nothing. */
  readonly outcome?: TaskOutcome;
  /** What else is written. */
  readonly set?: Pick<MoveColumns, "hint_task_id" | "is_trailing">;
}

/** The failure of a task that was not done in time. */
export const timedOut: Failure = {
  code: ErrorCode.TASK_TIMEOUT,
  message: "the task was not done by its deadline; nothing was charged",
};

const refusals = new Set<FailureCode>([ErrorCode.CONTENT_REJECTED, ErrorCode.INVALID_PARAMETERS]);

/** How the record among the calls says it. */
export function endingOf(code: FailureCode): CallEnding {
  if (code === ErrorCode.INTERNAL_ERROR) return CallEnding.GATEWAY_FAILED;
  return refusals.has(code) ? CallEnding.UPSTREAM_REFUSED : CallEnding.UPSTREAM_FAILED;
}
