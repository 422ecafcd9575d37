/**
 * Pictures and films of DashScope. A task carries no reference of ours that it could be found by, and nobody
 * knows a repetition: what got no answer is never asked again.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { isRecord } from "../../dialect/json/value.ts";
import { bearer } from "../http-vendor.ts";
import {
  createTaskHttp,
  isOk,
  jsonOf,
  submitTask,
  troubleOf,
  faultText,
  type RefusalWords,
  type TaskHttp,
} from "../task-http.ts";
import {
  VendorTrouble,
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskNews,
  type TaskSubmission,
  type TaskFaultCode,
  type TaskUnits,
  type VendorFile,
} from "../task.ts";
import { dashscopeCode, dashscopeFault, dashscopeMessage, isUnwantedContent } from "./faults.ts";
import { dashscopeBody, dashscopeSchema, dashscopeUnits, secondsUsual } from "./params.ts";

const imagesPath = "/api/v1/services/aigc/text2image/image-synthesis";
const videosPath = "/api/v1/services/aigc/video-generation/video-synthesis";

const words: RefusalWords = {
  faultOf: dashscopeFault,
  messageOf: dashscopeMessage,
  isContent: (body) => isUnwantedContent(dashscopeCode(body)),
  isSynchronous: false,
};

/** Makes them. */
export function createDashscopeTasks(config: VendorConfig): OpenTasks {
  const http = createTaskHttp(config, {
    credential: bearer(config.apiKey),
    isSynchronous: false,
  });
  return {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE, ModelType.VIDEO]),
    canCancel: true,
    // "20 QPS per account" for questions about tasks.
    pollsPerSecond: 20,
    submit: (task) => submit(http, task),
    poll: (vendorTaskId, signal) => poll(http, vendorTaskId, signal),
    cancel: (vendorTaskId, signal) => cancel(http, vendorTaskId, signal),
    paramsSchema: dashscopeSchema,
    units: dashscopeUnits,
    secondsUsual,
    close: () => http.close(),
  };
}

async function submit(http: TaskHttp, task: TaskSubmission): Promise<Submitted> {
  const { model, type, params, signal } = task;
  const reply = await submitTask(
    http,
    {
      method: "POST",
      path: type === ModelType.VIDEO ? videosPath : imagesPath,
      json: dashscopeBody(type, model, params),
      headers: { "x-dashscope-async": "enable" },
      signal,
    },
    words,
  );
  const vendorTaskId = dashscopeTaskId(jsonOf(reply) ?? {});
  if (vendorTaskId !== undefined) return { vendorTaskId };
  throw new VendorTrouble(reply.status, "answered a task without its id");
}

function placeOf(vendorTaskId: string): string {
  return `/api/v1/tasks/${encodeURIComponent(vendorTaskId)}`;
}

async function poll(http: TaskHttp, id: string, signal: AbortSignal): Promise<TaskNews> {
  const reply = await http.ask({ method: "GET", path: placeOf(id), signal });
  if (!isOk(reply)) throw troubleOf(reply, words);
  return dashscopeNews(jsonOf(reply) ?? {});
}

/** It takes back what waits, and refuses what runs. */
async function cancel(http: TaskHttp, id: string, signal: AbortSignal): Promise<CancelAnswer> {
  const reply = await http.ask({ method: "POST", path: `${placeOf(id)}/cancel`, signal });
  if (isOk(reply)) return "requested";
  const isRefused = dashscopeCode(reply.body) === "UnsupportedOperation";
  if (isRefused || reply.status === 404) return "too_late";
  throw troubleOf(reply, words);
}

/* How DashScope's tasks are told of: one form for all of its pictures and films. */

/** How long DashScope keeps a task, in milliseconds. */
export const dashscopeKeptMs = 24 * 60 * 60 * 1_000;

/** The id of a task in an answer; `undefined`: it tells of none. */
export function dashscopeTaskId(json: JsonObject): string | undefined {
  const id = outputOf(json)["task_id"];
  return typeof id === "string" && /^[\w-]{1,200}$/.test(id) ? id : undefined;
}

/** Its word of how a task stands; empty: it says nothing. */
export function dashscopeStatus(json: JsonObject): string {
  const status = outputOf(json)["task_status"];
  return typeof status === "string" ? status : "";
}

/** How a task stands. One that is not known any more was kept no longer. @throws VendorTrouble where it does not say */
export function dashscopeNews(json: JsonObject): TaskNews {
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
      throw new VendorTrouble(200, `told the unknown status ${status}`);
  }
}

function succeeded(json: JsonObject): TaskNews {
  const output = outputOf(json);
  const videos = [output["video_url"], objectOf(output["results"])["video_url"]].flatMap((url) =>
    fileOf(url, "video/mp4"),
  );
  const files = videos.length > 0 ? videos : picturesIn(output);
  // Each of several pictures can fail alone.
  const [reason] = objectsOf(output["results"]).filter((each) => "code" in each);
  if (files.length === 0) return failed(reason ?? output);
  const units = videos.length > 0 ? secondsOf(json) : imagesOf(json, files.length);
  return { status: "completed", outcome: { files, ...(units && { units }) } };
}

function picturesIn(output: JsonObject): readonly VendorFile[] {
  const listed = objectsOf(output["results"]).map(({ url }) => url);
  const said = objectsOf(output["choices"]).flatMap((choice) =>
    objectsOf(objectOf(choice["message"])["content"]).map(({ image }) => image),
  );
  return [...listed, ...said].flatMap((url) => fileOf(url, "image/png"));
}

function imagesOf(json: JsonObject, files: number): TaskUnits {
  const told = objectOf(json["usage"])["image_count"];
  const counted = objectOf(outputOf(json)["task_metrics"])["SUCCEEDED"];
  const count = [told, counted].find((each) => typeof each === "number" && each > 0);
  return { images: typeof count === "number" ? count : files };
}

/** `undefined`: it does not say. */
function secondsOf(json: JsonObject): TaskUnits | undefined {
  const usage = objectOf(json["usage"]);
  for (const name of ["duration", "video_duration", "output_video_duration"]) {
    const seconds = usage[name];
    if (typeof seconds === "number" && seconds > 0) return { seconds };
  }
  return undefined;
}

function failed({ code, message }: JsonObject): TaskNews {
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
