/** The words of vendors' failures, as codes. */
import { ErrorCode } from "../errors.ts";
import type { TaskFaultCode } from "../vendor/task.ts";

const codes = {
  content_rejected: ErrorCode.CONTENT_REJECTED,
  invalid_parameters: ErrorCode.INVALID_PARAMETERS,
  upstream_error: ErrorCode.UPSTREAM_ERROR,
} as const satisfies Record<TaskFaultCode, ErrorCode>;

/** The code of a failure that a vendor is the reason of. */
export function faultCode(code: TaskFaultCode): (typeof codes)[TaskFaultCode] {
  return codes[code];
}
