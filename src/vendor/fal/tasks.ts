/**
 * Jobs in fal's queue. A job carries no reference of ours that it could be found by, and nobody knows a repetition:
 * what got no answer is never asked again. It does not say where its news go either, so none are asked for: whoever
 * had heard of an address could send them there.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { isRecord } from "../../dialect/json/value.ts";
import type { NativeResult } from "../native.ts";
import {
  createTaskHttp,
  faultText,
  isOk,
  jsonOf,
  submitTask,
  troubleOf,
  contentTypes,
  type RefusalWords,
  type TaskHttp,
  type TaskReply,
} from "../task-http.ts";
import {
  VendorTrouble,
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskNews,
  type TaskSubmission,
  type TaskUnits,
  type VendorFile,
} from "../task.ts";
import { falDetail, falFault, isFalContent } from "./faults.ts";
import { falBilled, secondsIn, falUnits } from "./meter.ts";
import { falInput, falSchema, falUnitsAsked, secondsUsual } from "./params.ts";

/** Makes them. @param credential the headers that carry it */
export function createFalTasks(
  config: VendorConfig,
  credential: Readonly<Record<string, string>>,
): OpenTasks {
  const http = createTaskHttp(config, { credential, isSynchronous: false });
  return {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO]),
    canCancel: true,
    submit: (task) => submit(http, task),
    poll: (vendorTaskId, signal, type) => poll(http, { vendorTaskId, signal, type }),
    async cancel(vendorTaskId, signal) {
      const path = `/${vendorTaskId}/cancel`;
      return cancelAnswer(await http.ask({ method: "PUT", path, signal }));
    },
    paramsSchema: falSchema,
    units: falUnitsAsked,
    secondsUsual,
    close: () => http.close(),
  };
}

const words: RefusalWords = {
  faultOf: falFault,
  messageOf: falDetail,
  isContent: isFalContent,
  isSynchronous: false,
};

/** A job's id is the path of its addresses: they have its model's name, of which there is nothing in a look at it. */
async function submit(http: TaskHttp, task: TaskSubmission): Promise<Submitted> {
  const { model, type, params, signal } = task;
  const json = falInput(type, model, params);
  const path = `/${pathOf(model)}`;
  const reply = await submitTask(http, { method: "POST", path, json, signal }, words);
  const id = falJobId(jsonOf(reply) ?? {});
  if (id !== undefined) return { vendorTaskId: `${pathOf(falApp(model))}/requests/${id}` };
  throw new VendorTrouble(reply.status, "answered a job without its id");
}

function pathOf(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

interface Look {
  readonly vendorTaskId: string;
  readonly signal: AbortSignal;
  /** What it makes; `undefined`: what its files are. */
  readonly type: ModelType | undefined;
}

/** How a job stands, and what came of it where it has ended. @throws VendorTrouble */
async function poll(http: TaskHttp, { vendorTaskId, signal, type }: Look): Promise<TaskNews> {
  const stands = await http.ask({ method: "GET", path: `/${vendorTaskId}/status`, signal });
  const news = falNews(jsonIn(stands));
  if (news.status === "running") return news;
  return resultNews(await http.ask({ method: "GET", path: `/${vendorTaskId}`, signal }), type);
}

function resultNews(reply: TaskReply, type: ModelType | undefined): TaskNews {
  const { status, headers, body } = reply;
  if (isOk(reply)) return madeNews(jsonIn(reply), reply, type);
  if (isPassing(status)) throw troubleOf(reply, words);
  // One that was stopped has ended as one that failed.
  const isStopped = /\bcancell?ed\b/i.test(falDetail(body) ?? "");
  return isStopped ? falCancelled(headers, type === ModelType.IMAGE) : falFailure(status, body);
}

function madeNews(result: JsonObject, { headers }: TaskReply, type?: ModelType): TaskNews {
  const files = falFiles(result);
  if (files.length === 0) {
    const message = `${faultText("upstream_error", undefined)} (no file came of it)`;
    return { status: "failed", error: { code: "upstream_error", message } };
  }
  const arePictures = files.every(({ contentType }) => contentType.startsWith("image/"));
  const isPicture = type === undefined ? arePictures : type === ModelType.IMAGE;
  const units = isPicture ? imagesOf(result, headers) : secondsOf(result, headers);
  return { status: "completed", outcome: { files, ...(units !== undefined && { units }) } };
}

/** `undefined`: nothing says how many, so what was asked for is charged. */
function imagesOf({ images }: JsonObject, headers: TaskReply["headers"]): TaskUnits | undefined {
  const billed = falBilled(headers);
  if (billed !== undefined) return { images: Math.ceil(billed) };
  return Array.isArray(images) ? { images: images.length } : undefined;
}

/** `undefined`: nothing says how many, so what was asked for is charged. */
function secondsOf(result: JsonObject, headers: TaskReply["headers"]): TaskUnits | undefined {
  const seconds = falBilled(headers) ?? secondsIn(result);
  return seconds === undefined ? undefined : { seconds };
}

/** @throws VendorTrouble where it is no answer */
function jsonIn(reply: TaskReply): JsonObject {
  if (!isOk(reply)) throw troubleOf(reply, words);
  const json = jsonOf(reply);
  if (json !== undefined) return json;
  throw new VendorTrouble(reply.status, "answered with something else than JSON about a job");
}

/** @throws VendorTrouble where it does not say */
function cancelAnswer(reply: TaskReply): CancelAnswer {
  if (isOk(reply)) return "requested";
  const { status } = jsonOf(reply) ?? {};
  // One that is not there any more has ended long ago.
  const isOver = reply.status === 404 || status === "ALREADY_COMPLETED" || status === "NOT_FOUND";
  if (isOver) return "too_late";
  throw troubleOf(reply, words);
}

/* How jobs in fal's queue are told of. What one came to stands at another address than how it stands. */

/** What fal says where it was asked to stop a job, and will if it can. */
const cancelling = "CANCELLATION_REQUESTED";

/** `owner/app`, to which a job belongs: what else there is in its model's name is not part of its addresses. */
export function falApp(model: string): string {
  const parts = model.split("/");
  const isNamed = parts[0] === "workflows" || parts[0] === "comfy";
  return parts.slice(0, isNamed ? 3 : 2).join("/");
}

/** The id of a job in an answer; `undefined`: it tells of none. */
export function falJobId({ request_id: id }: JsonObject): string | undefined {
  return typeof id === "string" && /^[\w-]{1,200}$/.test(id) ? id : undefined;
}

/** Its word of how a job stands. That it was to be stopped is not said again, and tells what its end means. */
export function falStatus({ status }: JsonObject, before: string): string {
  return before === cancelling || typeof status !== "string" ? before : status;
}

/** Whether a job has ended: how is told by its result. @throws VendorTrouble where it does not say */
export function falNews({ status }: JsonObject): TaskNews {
  if (status === "IN_QUEUE" || status === "IN_PROGRESS") return { status: "running" };
  if (status === "COMPLETED") return { status: "completed", outcome: { files: [] } };
  throw new VendorTrouble(200, `told the unknown status ${JSON.stringify(status)}`);
}

/** What a job came to. @throws VendorTrouble where it is not said now */
export function falResult({ status, headers, body, asked, before }: NativeResult): TaskNews {
  const json = jsonOf({ body });
  if (status >= 200 && status < 300 && json !== undefined) {
    const type = asked.images === undefined ? ModelType.VIDEO : ModelType.IMAGE;
    const units = falUnits(json, { type, asked, headers });
    return { status: "completed", outcome: { files: falFiles(json), units } };
  }
  if (isPassing(status)) throw new VendorTrouble(status, `answered a result with status ${status}`);
  return before === cancelling
    ? falCancelled(headers, asked.images !== undefined)
    : falFailure(status, body);
}

/** What a result that is none says of its job. */
function falFailure(status: number, body: Buffer): TaskNews {
  const said = falDetail(body);
  if (isFalContent(body)) return failed("content_rejected", said);
  const isInput = status === 400 || status === 422;
  return failed(isInput ? "invalid_parameters" : "upstream_error", isInput ? said : undefined);
}

/** It says how much of the unit it bills, also for what it stopped. */
function falCancelled(headers: NativeResult["headers"], isPicture: boolean): TaskNews {
  const billed = falBilled(headers) ?? 0;
  if (billed === 0) return { status: "cancelled" };
  const units = isPicture ? { images: Math.ceil(billed) } : { seconds: billed };
  return { status: "cancelled", taken: { units } };
}

/** Whether the status of a result is about the gateway or about fal, and not about the job. */
function isPassing(status: number): boolean {
  return status < 400 || status > 500 || [401, 402, 403, 408, 429].includes(status);
}

function failed(
  code: "content_rejected" | "invalid_parameters" | "upstream_error",
  said: string | undefined,
): TaskNews {
  return { status: "failed", error: { code, message: faultText(code, said) } };
}

/** The files in a result. */
function falFiles(result: JsonObject): readonly VendorFile[] {
  return filesIn(result, 0);
}

/** How deep files may be in a result: `{"images":[{"url":…}]}`. */
const depthMax = 4;

function filesIn(value: JsonValue, depth: number): readonly VendorFile[] {
  if (typeof value !== "object" || value === null || depth > depthMax) return [];
  if (Array.isArray(value)) return value.flatMap((each) => filesIn(each, depth + 1));
  const { url, content_type: type } = value;
  if (typeof url === "string") return fileOf(url, typeof type === "string" ? type : undefined);
  return Object.values(value).flatMap((each) =>
    isRecord(each) || Array.isArray(each) ? filesIn(each, depth + 1) : [],
  );
}

function fileOf(url: string, type: string | undefined): readonly VendorFile[] {
  const [, written, data] = /^data:([\w.+-]+\/[\w.+-]+)[^,]*;base64,([\s\S]+)$/.exec(url) ?? [];
  if (written !== undefined && data !== undefined) {
    return [{ bytes: Buffer.from(data, "base64"), contentType: written }];
  }
  return /^https?:\/\//.test(url) && URL.canParse(url)
    ? [{ url, contentType: type ?? typeOf(url) }]
    : [];
}

function typeOf(url: string): string {
  const ending = /\.([a-z0-9]{1,5})$/i.exec(new URL(url).pathname)?.[1]?.toLowerCase() ?? "";
  return contentTypes[ending] ?? "application/octet-stream";
}
