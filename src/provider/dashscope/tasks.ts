/**
 * Image and video tasks of DashScope. A task carries no reference of ours and repeats are not
 * recognised, so a submit without an answer is never repeated.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { isRecord } from "../../wire/json/value.ts";
import { bearerHeader } from "../http-vendor.ts";
import {
  createTaskHttp,
  isOk,
  parseJsonReply,
  submitTask,
  readReplyError,
  faultText,
  type RefusalReader,
  type TaskHttp,
} from "../task-http.ts";
import {
  VendorReplyError,
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskUpdate,
  type TaskSubmission,
  type TaskFaultCode,
  type TaskUnits,
  type VendorFile,
} from "../task.ts";
import { dashscopeCode, dashscopeFault, dashscopeMessage, isUnwantedContent } from "./faults.ts";
import {
  assumedSeconds,
  dashscopeBody,
  dashscopeSchema,
  dashscopeUnits,
  isImageEditor,
} from "./params.ts";

const imagesPath = "/api/v1/services/aigc/text2image/image-synthesis";
const editsPath = "/api/v1/services/aigc/image2image/image-synthesis";
const videosPath = "/api/v1/services/aigc/video-generation/video-synthesis";

const words: RefusalReader = {
  faultOf: dashscopeFault,
  messageOf: dashscopeMessage,
  isContent: (body) => isUnwantedContent(dashscopeCode(body)),
  isSynchronous: false,
};

/** Creates the adapter. */
export function createDashscopeTasks(config: VendorConfig): OpenTasks {
  const http = createTaskHttp(config, {
    credential: bearerHeader(config.apiKey),
    isSynchronous: false,
  });
  return {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE, ModelType.VIDEO]),
    canCancel: true,
    // DashScope allows "20 QPS per account" for polls.
    pollsPerSecond: 20,
    submit: (task) => submit(http, task),
    poll: (vendorTaskId, signal) => poll(http, vendorTaskId, signal),
    cancel: (vendorTaskId, signal) => cancel(http, vendorTaskId, signal),
    paramsSchema: dashscopeSchema,
    units: dashscopeUnits,
    assumedSeconds: assumedSeconds,
    close: () => http.close(),
  };
}

async function submit(http: TaskHttp, task: TaskSubmission): Promise<Submitted> {
  const { model, type, params, signal } = task;
  const reply = await submitTask(
    http,
    {
      method: "POST",
      path: pathOf(type, model),
      json: dashscopeBody(type, model, params),
      headers: { "x-dashscope-async": "enable" },
      signal,
    },
    words,
  );
  const vendorTaskId = dashscopeTaskId(parseJsonReply(reply) ?? {});
  if (vendorTaskId !== undefined) return { vendorTaskId };
  throw new VendorReplyError(reply.status, "answered a task without its id");
}

function pathOf(type: ModelType, model: string): string {
  if (type === ModelType.VIDEO) return videosPath;
  return isImageEditor(model) ? editsPath : imagesPath;
}

function placeOf(vendorTaskId: string): string {
  return `/api/v1/tasks/${encodeURIComponent(vendorTaskId)}`;
}

async function poll(http: TaskHttp, id: string, signal: AbortSignal): Promise<TaskUpdate> {
  const reply = await http.send({ method: "GET", path: placeOf(id), signal });
  if (!isOk(reply)) throw readReplyError(reply, words);
  return dashscopeUpdate(parseJsonReply(reply) ?? {});
}

/** Pending tasks can be cancelled; for running ones cancellation is refused. */
async function cancel(http: TaskHttp, id: string, signal: AbortSignal): Promise<CancelAnswer> {
  const reply = await http.send({ method: "POST", path: `${placeOf(id)}/cancel`, signal });
  if (isOk(reply)) return "requested";
  const isRefused = dashscopeCode(reply.body) === "UnsupportedOperation";
  if (isRefused || reply.status === 404) return "too_late";
  throw readReplyError(reply, words);
}

/** Retention of tasks at DashScope. */
export const dashscopeRetentionMs = 24 * 60 * 60 * 1_000;

/** Returns the task ID of a reply; undefined if there is none. */
export function dashscopeTaskId(json: JsonObject): string | undefined {
  const id = outputOf(json)["task_id"];
  return typeof id === "string" && /^[\w-]{1,200}$/.test(id) ? id : undefined;
}

/** DashScope's status of a task; empty if there is none. */
export function dashscopeStatus(json: JsonObject): string {
  const status = outputOf(json)["task_status"];
  return typeof status === "string" ? status : "";
}

/**
 * Reads the state of a task. An unknown task has passed its retention. @throws VendorReplyError if
 * the reply has no status
 */
export function dashscopeUpdate(json: JsonObject): TaskUpdate {
  const status = dashscopeStatus(json);
  switch (status) {
    case "PENDING":
    case "RUNNING":
    case "SUSPENDED":
      return { status: "running" };
    case "SUCCEEDED":
      return succeeded(json);
    case "FAILED":
      return failed(outputOf(json));
    case "UNKNOWN":
      return failed({});
    case "CANCELED":
      return { status: "cancelled" };
    default:
      throw new VendorReplyError(200, `reported the unknown status ${status}`);
  }
}

function succeeded(json: JsonObject): TaskUpdate {
  const output = outputOf(json);
  const videos = [output["video_url"], objectOf(output["results"])["video_url"]].flatMap((url) =>
    fileOf(url, "video/mp4"),
  );
  const files = videos.length > 0 ? videos : imagesIn(output);
  // Each of several images can fail separately.
  const [reason] = objectsOf(output["results"]).filter((each) => "code" in each);
  if (files.length === 0) return failed(reason ?? output);
  const units = videos.length > 0 ? secondsOf(json) : imagesOf(json, files.length);
  return { status: "completed", outcome: { files, ...(units && { units }) } };
}

function imagesIn(output: JsonObject): readonly VendorFile[] {
  const listed = objectsOf(output["results"]).map(({ url }) => url);
  const said = objectsOf(output["choices"]).flatMap((choice) =>
    objectsOf(objectOf(choice["message"])["content"]).map(({ image }) => image),
  );
  return [...listed, ...said].flatMap((url) => fileOf(url, "image/png"));
}

function imagesOf(json: JsonObject, files: number): TaskUnits {
  const reported = objectOf(json["usage"])["image_count"];
  const counted = objectOf(outputOf(json)["task_metrics"])["SUCCEEDED"];
  const count = [reported, counted].find((each) => typeof each === "number" && each > 0);
  return { images: typeof count === "number" ? count : files };
}

/** `undefined` if the reply has no length. */
function secondsOf(json: JsonObject): TaskUnits | undefined {
  const usage = objectOf(json["usage"]);
  for (const name of ["duration", "video_duration", "output_video_duration"]) {
    const seconds = usage[name];
    if (typeof seconds === "number" && seconds > 0) return { seconds };
  }
  return undefined;
}

function failed({ code, message }: JsonObject): TaskUpdate {
  const word = typeof code === "string" ? code : "";
  const said = typeof message === "string" ? message : undefined;
  const meant = meaningOf(word);
  return { status: "failed", error: { code: meant, message: faultText(meant, said) } };
}

function meaningOf(code: string): TaskFaultCode {
  if (isUnwantedContent(code)) return "content_rejected";
  return code.startsWith("InvalidParameter") ? "invalid_parameters" : "upstream_error";
}

function fileOf(url: JsonValue | undefined, contentType: string): readonly VendorFile[] {
  return typeof url === "string" && URL.canParse(url) ? [{ url, contentType }] : [];
}

function outputOf(json: JsonObject): JsonObject {
  return objectOf(json["output"]);
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isRecord(value) ? value : {};
}

function objectsOf(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isRecord(each)) : [];
}
