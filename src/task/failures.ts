/** Errors of task requests, and the failures that end tasks. */
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { queuedTasksMax } from "../core/limits.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import type { TaskOutcome, TaskFaultCode } from "../provider/task.ts";
import type { TransitionColumns } from "./transition.ts";

/** 404 for an unknown task and for one of another account: always the same. */
export function noSuchTask(): GatewayError {
  return new GatewayError(
    ErrorCode.TASK_NOT_FOUND,
    "There is no such task: check the task id; tasks are found by the account that submitted them, for 30 days",
  );
}

/** 409 for a running task whose vendor cannot stop it. */
export function notCancellable(): GatewayError {
  return new GatewayError(
    ErrorCode.TASK_NOT_CANCELLABLE,
    "The task can no longer be cancelled: its vendor cannot stop it, or its result is being fetched; wait for its end",
    { retryAfterSeconds: 2 },
  );
}

/** 400 for one member of a request. The message names the member, then the rule that it breaks. */
export function invalidParam(param: string, rule: string): GatewayError {
  return invalid(param, `${param}: ${rule}`);
}

/**
 * 409 if the callback id belongs to a task with another body.
 *
 * @param name of the member or header that contained it
 */
export function callbackIdReused(name: string, taskId: string): GatewayError {
  return new GatewayError(
    ErrorCode.IDEMPOTENCY_KEY_REUSED,
    `${name}: it was used for task ${taskId} with another body; choose a new one. Nothing was charged`,
    { param: name, metadata: { task_id: taskId } },
  );
}

/** 429 if the account has too many queued tasks. */
export function queueFull(): GatewayError {
  return new GatewayError(
    ErrorCode.QUEUE_FULL,
    `${queuedTasksMax} tasks of this account are queued already; submit more when some of them run`,
    { retryAfterSeconds: 10 },
  );
}

/** Codes that a task can fail with. */
type FailureCode =
  | typeof ErrorCode.CONTENT_REJECTED
  | typeof ErrorCode.INVALID_PARAMETERS
  | typeof ErrorCode.INVALID_REQUEST
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
  /** The vendor's output despite the failure, which it charges for. None by default. */
  readonly outcome?: TaskOutcome;
  /** Further columns to write. */
  readonly set?: Pick<TransitionColumns, "reported_vendor_task_id" | "is_late_charge_pending">;
}

/** The failure of a task that reached its deadline. */
export const timedOut: Failure = {
  code: ErrorCode.TASK_TIMEOUT,
  message: "the task was not complete by its deadline; nothing was charged",
};

const refusals = new Set<FailureCode>([
  ErrorCode.CONTENT_REJECTED,
  ErrorCode.INVALID_PARAMETERS,
  ErrorCode.INVALID_REQUEST,
]);

/** The ending of a failure in the call record. */
export function endingOf(code: FailureCode): CallEnding {
  if (code === ErrorCode.INTERNAL_ERROR) return CallEnding.GATEWAY_FAILED;
  return refusals.has(code) ? CallEnding.UPSTREAM_REFUSED : CallEnding.UPSTREAM_FAILED;
}

const codes = {
  content_rejected: ErrorCode.CONTENT_REJECTED,
  invalid_parameters: ErrorCode.INVALID_PARAMETERS,
  invalid_request: ErrorCode.INVALID_REQUEST,
  upstream_error: ErrorCode.UPSTREAM_ERROR,
} as const satisfies Record<TaskFaultCode, ErrorCode>;

/** The error code of a failure that a vendor reported. */
export function faultCode(code: TaskFaultCode): (typeof codes)[TaskFaultCode] {
  return codes[code];
}
