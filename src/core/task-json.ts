/** Tasks as JSON: one shape for REST polls, lists and the command line. */
import type { JsonObject } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { ModelTypeSchema } from "../../gen/uas/inference/v1/model_pb.ts";
import {
  type Task,
  TaskStageSchema,
  TaskStatus,
  TaskStatusSchema,
} from "../../gen/uas/task/v1/task_pb.ts";
import { errorWord } from "./error-words.ts";
import { formatUsd } from "./money.ts";

/** The answer to a submit request (R-TSK-2). */
export function submittedJson(task: Task): JsonObject {
  const { callbackId } = task;
  return {
    taskId: task.taskId,
    status: statusWord(task.status),
    progress: task.progress,
    modelKey: task.modelKey,
    ...(callbackId !== "" && { callbackId }),
    createdAt: time(task.createTime),
  };
}

/** The answer to a poll (R-TSK-4). */
export function taskJson(task: Task): JsonObject {
  const { files, usage } = task;
  const promptTokens = usage?.inputTokens ?? 0;
  const completionTokens = usage?.outputTokens ?? 0;
  const word = errorWord(task.errorCode);
  const isFailed = task.status === TaskStatus.FAILED;
  return {
    taskId: task.taskId,
    modelKey: task.modelKey,
    taskType: ModelTypeSchema.value[task.type]?.localName ?? "",
    callbackId: orNull(task.callbackId),
    status: statusWord(task.status),
    stage: TaskStageSchema.value[task.stage]?.localName.toLowerCase() ?? "",
    progress: task.progress,
    resultUrl: files[0]?.url ?? null,
    resultUrls: files.map(({ url }) => url),
    resultFiles: files.map(({ url, contentType, sizeBytes, sha256 }) => ({
      url,
      contentType,
      bytes: Number(sizeBytes),
      sha256,
    })),
    resultContent: task.resultContent ?? null,
    error: isFailed ? { code: word, message: task.errorMessage } : null,
    errorCode: orNull(word),
    usage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
    cost: task.cost
      ? { amount: formatUsd(task.cost.amountNanos), currency: task.cost.currencyCode }
      : null,
    createdAt: time(task.createTime),
    startedAt: time(task.startTime),
    finishedAt: time(task.finishTime),
    expiresAt: time(task.expireTime),
    cancelRequested: task.cancelRequested,
  };
}

/** The documented name of a status. */
export function statusWord(status: TaskStatus): string {
  return TaskStatusSchema.value[status]?.localName.toLowerCase() ?? "";
}

function time(at: Timestamp | undefined): string | null {
  return at === undefined ? null : timestampDate(at).toISOString();
}

function orNull(text: string): string | null {
  return text === "" ? null : text;
}
