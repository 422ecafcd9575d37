/** The trace of a task: one span from its start to its end, in whichever processes it ran. */
import { formatUsd } from "../../core/money.ts";
import { own, standard } from "../../observe/traces/names.ts";
import type { Traces } from "../../observe/traces/traces.ts";
import type { TaskRow } from "../task-row.ts";

/** Records the trace of an ended task whose submit was traced. */
export function traceTask(traces: Traces | undefined, task: TaskRow): void {
  if (traces === undefined || task.traceparent === null) return;
  const span = traces.start(`task ${task.model}`, {
    role: "consumer",
    startTime: task.start_time ?? task.create_time,
    causedBy: task.traceparent,
    attributes: {
      [own.task]: task.id,
      [own.requestId]: task.request_id,
      [own.account]: task.account_id,
      [own.key]: task.key_id,
      [own.model]: task.model,
      [own.vendor]: task.vendor || undefined,
      [own.ending]: task.state,
      [own.costAmount]: Number(formatUsd(BigInt(task.cost ?? 0))),
      [own.costCurrency]: "USD",
      [standard.requestModel]: task.vendor_model || undefined,
      [standard.inputTokens]: task.usage?.inputTokens,
      [standard.outputTokens]: task.usage?.outputTokens,
      [standard.errorType]: task.error_code ?? undefined,
    },
  });
  span?.end(task.error_code ?? undefined);
}
