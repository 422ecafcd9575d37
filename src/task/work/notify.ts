/** Enqueues the webhook of a task. */
import { TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import { enqueueWebhook } from "../../webhook/enqueue.ts";
import type { WebhookPayload, WebhookStatus } from "../../webhook/payload.ts";
import type { Transaction } from "../../db/pool/transaction.ts";
import { publicState } from "../state.ts";
import type { TaskRow } from "../task-row.ts";

/** The webhook status of each end; every other state is progress. */
const words: Readonly<Partial<Record<TaskStatus, WebhookStatus>>> = {
  [TaskStatus.COMPLETED]: "completed",
  [TaskStatus.FAILED]: "failed",
  [TaskStatus.CANCELLED]: "cancelled",
};

/** Further content of a task's webhook. */
export interface NotifyOptions {
  /** By default the task's callback id; if it has none, its id. */
  readonly callbackId?: string | null;
  /** Further members of `external_data`. None by default. */
  readonly extra?: WebhookPayload["extra"];
}

/**
 * Enqueues the webhook of a task in its current state, in the transaction that has just changed it,
 * whose row lock orders the events. Does nothing for a task without a callback address.
 */
export async function notifyTask(
  transaction: Transaction,
  task: TaskRow,
  { callbackId = task.callback_id, extra }: NotifyOptions = {},
): Promise<void> {
  if (task.callback_url === null) return;
  const { inputTokens = 0, outputTokens = 0 } = task.usage ?? {};
  await enqueueWebhook(transaction, {
    accountId: task.account_id,
    taskId: task.id,
    url: task.callback_url,
    modelKey: task.model,
    requestId: task.request_id,
    traceparent: task.traceparent,
    callbackId: callbackId ?? task.id,
    ...(extra && { extra }),
    status: words[publicState(task.state).status] ?? "progress",
    progress: task.progress,
    resultUrl: task.result?.files[0]?.url ?? null,
    resultContent: task.result?.text ?? null,
    error: task.error,
    errorCode: task.error_code,
    usage: {
      promptTokens: inputTokens,
      completionTokens: outputTokens,
      totalTokens: inputTokens + outputTokens,
    },
    time: task.finish_time ?? undefined,
  });
}
