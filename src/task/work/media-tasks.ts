/** Runs requests for images and speech as IMAGE and AUDIO tasks, for the inference room. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { withTimeout } from "../../core/async.ts";
import { ErrorCode, GatewayError, type SentErrorCode } from "../../core/errors.ts";
import { errorCodeOf } from "../../core/error-words.ts";
import { idempotencyHeader } from "../../core/idempotency-key.ts";
import type { MediaTaskEnd, MediaTasks, TaskFile } from "../../calls/adapters/media/media-tasks.ts";
import type { ResultFiles } from "../../result/result.ts";
import type { VendorTasks } from "../../provider/task.ts";
import type { Cancel } from "./cancel.ts";
import { noSuchTask } from "../failures.ts";
import type { TaskFeed } from "../read/feed.ts";
import type { TaskSchemas } from "../schema/schemas.ts";
import { isEnded } from "../state.ts";
import type { TaskStore, TaskSummary } from "../store.ts";
import { fingerprint, readIdempotencyKey } from "../submit/submit-form.ts";
import type { Submit } from "../submit/submit.ts";
import type { StoredFileJson } from "../task-row.ts";

/** Options of {@link createMediaTasks}. */
interface MediaTasksOptions {
  /** The task interface of a vendor; undefined if it has none. */
  readonly tasksOf: (vendor: string) => VendorTasks | undefined;
  readonly schemas: TaskSchemas;
  readonly submit: Submit;
  readonly cancel: Cancel;
  readonly store: TaskStore;
  readonly feed: TaskFeed;
  readonly results: Pick<ResultFiles, "find">;
}

/** The types of models whose requests can become tasks. */
const mediaTypes: ReadonlySet<ModelType> = new Set([ModelType.IMAGE, ModelType.AUDIO]);

/**
 * Interval at which a task is read without a notification of its change. A new attempt sends no
 * notification.
 */
const recheckMs = 1_000;

/** Timeout of a cancel. */
const cancelMs = 5_000;

/** Creates the tasks of images and speech. */
export function createMediaTasks(options: MediaTasksOptions): MediaTasks {
  const { tasksOf, schemas, submit, cancel, store, feed } = options;
  return {
    find(model) {
      const { type, routes } = model;
      const isRun = routes.some(({ vendor }) => tasksOf(vendor)?.types.has(type));
      if (!mediaTypes.has(type) || !isRun) return undefined;
      return schemas.of(model);
    },

    async start({ id, caller, requestId, path, model, params, idempotencyKey }) {
      const taskModel = schemas.of(model);
      const { field } = taskModel;
      const asked = { modelKey: model.key, callbackUrl: "", field, params };
      const read = {
        taskModel,
        params,
        callbackId: readIdempotencyKey(idempotencyKey ?? null),
        callbackIdName: idempotencyHeader,
        callbackUrl: null,
        fingerprint: fingerprint(asked),
      };
      const { task, replayed } = await submit(read, { caller, requestId }, { id, callPath: path });
      return { taskId: task.id, replayed };
    },

    async wait(accountId, taskId, signal) {
      using changes = feed.subscribe(taskId);
      for (;;) {
        const task = await store.find(taskId, accountId);
        if (task === undefined) throw noSuchTask();
        if (isEnded(task.state)) return endOf(task, options);
        if (await isGivenUp(task, cancel)) return { error: noCapacity() };
        if (signal.aborted) return undefined;
        await changes.next(recheckMs, signal);
      }
    },

    async cancel(accountId, taskId) {
      await withTimeout(cancelMs, cancel(taskId, accountId)).catch(() => undefined);
    },
  };
}

/**
 * Cancels a task that its vendors have postponed: they may do so until its deadline, but its client
 * waits.
 */
async function isGivenUp({ id, account_id, state, poll_count }: TaskSummary, cancel: Cancel) {
  if (state !== "queued" || poll_count === 0) return false;
  // A worker may claim it at this moment.
  const task = await cancel(id, account_id).catch(() => undefined);
  return task?.state === "cancelled";
}

function noCapacity(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_OVERLOADED,
    "The model's vendor accepts no requests now; try again later, or submit a task, which waits for it",
    { retryAfterSeconds: 10 },
  );
}

function endOf(task: TaskSummary, { results }: Pick<MediaTasksOptions, "results">): MediaTaskEnd {
  if (task.state !== "completed") return { error: failureOf(task) };
  const { files = [] } = task.result ?? {};
  return {
    finishTime: task.finish_time ?? task.create_time,
    files: files.map((file) => fileOf(file, results)),
    inputTokens: task.usage?.inputTokens ?? 0,
    outputTokens: task.usage?.outputTokens ?? 0,
    costNanos: BigInt(task.cost ?? 0),
  };
}

function failureOf({ state, error_code: word, error: message }: TaskSummary): GatewayError {
  if (state === "cancelled") {
    return new GatewayError(ErrorCode.UPSTREAM_ERROR, "The task was cancelled before its end");
  }
  const failed = errorCodeOf(word ?? "") as SentErrorCode;
  // The customer sent a request, not the parameters of a task.
  const code = failed === ErrorCode.INVALID_PARAMETERS ? ErrorCode.INVALID_REQUEST : failed;
  return new GatewayError(code, message ?? "The result could not be generated; try again");
}

function fileOf(
  { url, contentType, sizeBytes }: StoredFileJson,
  { find }: Pick<ResultFiles, "find">,
): TaskFile {
  return {
    url,
    contentType,
    async read() {
      const found = await find(tokenOf(url));
      if (found === undefined || found.expired) throw gone();
      const pieces: Buffer[] = [];
      const file = await found.open({ start: 0, end: sizeBytes - 1 });
      for await (const piece of file) pieces.push(piece as Buffer);
      return Buffer.concat(pieces);
    },
  };
}

/** The token in `{public address}/files/{token}.{extension}`. */
function tokenOf(url: string): string {
  return /\/files\/([^/.]+)\.[^/]*$/.exec(url)?.[1] ?? "";
}

function gone(): GatewayError {
  return new GatewayError(
    ErrorCode.RESULT_UNAVAILABLE,
    "The result has expired: send the request again without its idempotency key",
  );
}
