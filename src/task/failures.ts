/** What callers are told where something cannot be done with a task. */
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import type { HoldVerdict } from "../billing/ledger/ledger.ts";
import { queuedTasksMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { formatUsd } from "../core/money.ts";
import type { TaskOutcome, TaskFaultCode } from "../vendor/task.ts";
import type { MoveColumns } from "./transition.ts";

/** What is said of a task that there is not, and of one of another account: always the same. */
export function noSuchTask(): GatewayError {
  return new GatewayError(
    ErrorCode.TASK_NOT_FOUND,
    "There is no such task: check the task id; tasks are found by the account that submitted them, for 30 days",
  );
}

/** It runs and cannot be stopped. */
export function notCancellable(): GatewayError {
  return new GatewayError(
    ErrorCode.TASK_NOT_CANCELLABLE,
    "The task cannot be cancelled any more: its vendor cannot stop it, or its result is being fetched; wait for its end",
    { retryAfterSeconds: 2 },
  );
}

/** A member of a request that is wrong. */
export function invalid(param: string, rule: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, `${param}: ${rule}`, { param });
}

/** The callback id stands for another task. @param name what the caller knows it by */
export function callbackIdReused(name: string, taskId: string): GatewayError {
  return new GatewayError(
    ErrorCode.IDEMPOTENCY_KEY_REUSED,
    `${name}: it was used for task ${taskId} with another body; choose a new one. Nothing was charged`,
    { param: name, metadata: { task_id: taskId } },
  );
}

/** Too many tasks wait. */
export function queueFull(): GatewayError {
  return new GatewayError(
    ErrorCode.QUEUE_FULL,
    `${queuedTasksMax} tasks of this account wait already; submit more when some of them run`,
    { retryAfterSeconds: 10 },
  );
}

/** Why a hold was refused. @param limitNanos what the key may spend in its life; `undefined`: no limit */
export function holdRefused(
  { availableNanos, keyRemainingNanos }: Extract<HoldVerdict, { admitted: false }>,
  neededNanos: bigint,
  limitNanos: bigint | undefined,
): GatewayError {
  const needed = formatUsd(neededNanos);
  const start = `Insufficient balance: this task can cost ${needed} USD`;
  if (keyRemainingNanos === undefined || limitNanos === undefined) {
    const available = formatUsd(availableNanos);
    return new GatewayError(
      ErrorCode.INSUFFICIENT_BALANCE,
      `${start}, ${available} USD is available; top up the account or ask for less`,
      { metadata: { needed, available } },
    );
  }
  const spendLimit = formatUsd(limitNanos);
  const remaining = formatUsd(keyRemainingNanos);
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `${start}, but of the API key's spend limit of ${spendLimit} USD only ${remaining} USD is left; raise the key's limit or ask for less`,
    { metadata: { needed, spend_limit: spendLimit, remaining } },
  );
}

/* Why tasks end without a result. */

/** Codes that a task can fail with. */
type FailureCode =
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

/* The words of vendors' failures, as codes. */

const codes = {
  content_rejected: ErrorCode.CONTENT_REJECTED,
  invalid_parameters: ErrorCode.INVALID_PARAMETERS,
  upstream_error: ErrorCode.UPSTREAM_ERROR,
} as const satisfies Record<TaskFaultCode, ErrorCode>;

/** The code of a failure that a vendor is the reason of. */
export function faultCode(code: TaskFaultCode): (typeof codes)[TaskFaultCode] {
  return codes[code];
}
