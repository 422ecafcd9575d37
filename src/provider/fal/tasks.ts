/**
 * Jobs in fal's queue. A job carries no reference of ours and fal does not recognise repeats, so a
 * submit without an answer is never repeated. Callbacks are not used, because a job does not
 * confirm its callback URL: anyone who learned the URL could send them.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { isRecord } from "../../wire/json/value.ts";
import type { NativeResult } from "../native.ts";
import {
  createTaskHttp,
  faultText,
  isOk,
  parseJsonReply,
  submitTask,
  readReplyError,
  contentTypes,
  type RefusalReader,
  type TaskHttp,
  type TaskReply,
} from "../task-http.ts";
import {
  VendorReplyError,
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskUpdate,
  type TaskSubmission,
  type TaskTokens,
  type TaskUnits,
  type VendorFile,
} from "../task.ts";
import { falDetail, falFault, isFalContent } from "./faults.ts";
import { falBilledUnits, falText, falUsage, secondsIn, falUnits } from "./meter.ts";
import { estimatedTokens, requestedSecondsMax } from "../task-params.ts";
import { falInput, falSchema, falParamsUnits, assumedSeconds } from "./params.ts";

/** Creates the adapter. @param credential the headers that carry it */
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
      return cancelAnswer(await http.send({ method: "PUT", path, signal }));
    },
    paramsSchema: falSchema,
    units: falParamsUnits,
    assumedSeconds: assumedSeconds,
    secondsMax: requestedSecondsMax,
    close: () => http.close(),
  };
}

const words: RefusalReader = {
  faultOf: falFault,
  messageOf: falDetail,
  isContent: isFalContent,
  isSynchronous: false,
};

/**
 * The job ID is the path of its URLs, because they contain the model's name, which a poll does not
 * have.
 */
async function submit(http: TaskHttp, task: TaskSubmission): Promise<Submitted> {
  const { model, type, params, signal } = task;
  const json = falInput(type, model, params);
  const path = `/${pathOf(model)}`;
  const reply = await submitTask(http, { method: "POST", path, json, signal }, words);
  const id = falJobId(parseJsonReply(reply) ?? {});
  if (id !== undefined) return { vendorTaskId: `${pathOf(falApp(model))}/requests/${id}` };
  throw new VendorReplyError(reply.status, "answered a job without its id");
}

function pathOf(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

interface Look {
  readonly vendorTaskId: string;
  readonly signal: AbortSignal;
  /** The requested type; `undefined` infers it from the files. */
  readonly type: ModelType | undefined;
}

/** The state of a job, and its result once it has ended. @throws VendorReplyError */
async function poll(http: TaskHttp, { vendorTaskId, signal, type }: Look): Promise<TaskUpdate> {
  const stands = await http.send({ method: "GET", path: `/${vendorTaskId}/status`, signal });
  const update = falUpdate(jsonIn(stands));
  if (update.status === "running") return update;
  return resultUpdate(await http.send({ method: "GET", path: `/${vendorTaskId}`, signal }), type);
}

function resultUpdate(reply: TaskReply, type: ModelType | undefined): TaskUpdate {
  const { status, headers, body } = reply;
  if (isOk(reply)) return completedUpdate(jsonIn(reply), reply, type);
  if (isGatewayOrVendorFailure(status)) throw readReplyError(reply, words);
  return isStopped(body)
    ? falCancelled(headers, type === ModelType.IMAGE)
    : falFailure(status, body);
}

function completedUpdate(result: JsonObject, { headers }: TaskReply, type?: ModelType): TaskUpdate {
  const files = falFiles(result);
  if (files.length === 0) {
    const message = `${faultText("upstream_error", undefined)} (no result file)`;
    return { status: "failed", error: { code: "upstream_error", message } };
  }
  const areImages = files.every(({ contentType }) => contentType.startsWith("image/"));
  const isImage = type === undefined ? areImages : type === ModelType.IMAGE;
  const units = isImage ? imagesOf(result, headers) : secondsOf(result, headers);
  return { status: "completed", outcome: { files, ...(units !== undefined && { units }) } };
}

/** `undefined` if the number is not stated; then the requested units are charged. */
function imagesOf({ images }: JsonObject, headers: TaskReply["headers"]): TaskUnits | undefined {
  const billed = falBilledUnits(headers);
  if (billed !== undefined) return { images: Math.ceil(billed) };
  return Array.isArray(images) ? { images: images.length } : undefined;
}

/** `undefined` if the length is not stated; then the requested units are charged. */
function secondsOf(result: JsonObject, headers: TaskReply["headers"]): TaskUnits | undefined {
  const seconds = falBilledUnits(headers) ?? secondsIn(result);
  return seconds === undefined ? undefined : { seconds };
}

/** @throws VendorReplyError if the body is no JSON object */
function jsonIn(reply: TaskReply): JsonObject {
  if (!isOk(reply)) throw readReplyError(reply, words);
  const json = parseJsonReply(reply);
  if (json !== undefined) return json;
  throw new VendorReplyError(reply.status, "answered with something else than JSON about a job");
}

/** @throws VendorReplyError if the reply is inconclusive */
function cancelAnswer(reply: TaskReply): CancelAnswer {
  if (isOk(reply)) return "requested";
  const { status } = parseJsonReply(reply) ?? {};
  // A job that no longer exists ended long ago.
  const isOver = reply.status === 404 || status === "ALREADY_COMPLETED" || status === "NOT_FOUND";
  if (isOver) return "too_late";
  throw readReplyError(reply, words);
}

/** fal's status for an accepted cancellation request. */
const cancelling = "CANCELLATION_REQUESTED";

/**
 * The app that a job belongs to, `owner/app`. The rest of a model's name is not part of its URLs.
 */
export function falApp(model: string): string {
  const parts = model.split("/");
  const isNamed = parts[0] === "workflows" || parts[0] === "comfy";
  return parts.slice(0, isNamed ? 3 : 2).join("/");
}

/** The id of a job in a reply; `undefined` if there is none. */
export function falJobId({ request_id: id }: JsonObject): string | undefined {
  return typeof id === "string" && /^[\w-]{1,200}$/.test(id) ? id : undefined;
}

/**
 * fal's status of a job. A requested cancellation is reported only once but decides what the end
 * means, so it is kept.
 */
export function falStatus({ status }: JsonObject, before: string): string {
  return before === cancelling || typeof status !== "string" ? before : status;
}

/**
 * Whether a job has ended; its result says how. @throws VendorReplyError if the reply has no status
 */
export function falUpdate({ status }: JsonObject): TaskUpdate {
  if (status === "IN_QUEUE" || status === "IN_PROGRESS") return { status: "running" };
  if (status === "COMPLETED") return { status: "completed", outcome: { files: [] } };
  throw new VendorReplyError(200, `reported the unknown status ${JSON.stringify(status)}`);
}

/** Reads the result of a job. @throws VendorReplyError if it is not available now */
export function falResult({ status, headers, body, requested, before }: NativeResult): TaskUpdate {
  const json = parseJsonReply({ body });
  if (status >= 200 && status < 300 && json !== undefined) {
    if (requested.outputTokens !== undefined) return textUpdate(json, requested);
    const type = requested.images === undefined ? ModelType.VIDEO : ModelType.IMAGE;
    const units = falUnits(json, { type, requested, headers });
    return { status: "completed", outcome: { files: falFiles(json), units } };
  }
  if (isGatewayOrVendorFailure(status))
    throw new VendorReplyError(status, `answered a result with status ${status}`);
  // The end may be seen before the answer to the request that caused it.
  return before === cancelling || isStopped(body)
    ? falCancelled(headers, requested.images !== undefined)
    : falFailure(status, body);
}

/** The end of a TEXT job. */
function textUpdate(result: JsonObject, { inputTokens: held = 0 }: TaskUnits): TaskUpdate {
  const text = falText(result);
  // A result does not repeat its input. The hold has about two tokens for each one of natural text.
  const inputTokens = Math.ceil(held / 2);
  const usage = reportedTokens(result) ?? { ...estimatedTokens("", text), inputTokens };
  return { status: "completed", outcome: { files: [], text, usage } };
}

function reportedTokens(result: JsonObject): TaskTokens | undefined {
  const usage = falUsage(result);
  if (usage === undefined) return undefined;
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
  return { inputTokens, cachedInputTokens, outputTokens, reasoningTokens };
}

/** Reads the failure of a job from an error reply. */
function falFailure(status: number, body: Buffer): TaskUpdate {
  const said = falDetail(body);
  if (isFalContent(body)) return failed("content_rejected", said);
  const isInput = status === 400 || status === 422;
  return failed(isInput ? "invalid_parameters" : "upstream_error", isInput ? said : undefined);
}

/** Whether a failure is the end of a cancelled job, which has the status of a failed one. */
function isStopped(body: Buffer): boolean {
  return /\bcancell?ed\b/i.test(falDetail(body) ?? "");
}

/** fal reports its billed units for cancelled jobs too. */
function falCancelled(headers: NativeResult["headers"], isImage: boolean): TaskUpdate {
  const billed = falBilledUnits(headers) ?? 0;
  if (billed === 0) return { status: "cancelled" };
  const units = isImage ? { images: Math.ceil(billed) } : { seconds: billed };
  return { status: "cancelled", reportedCost: { units } };
}

/** Whether the status concerns the gateway or fal rather than the job. */
function isGatewayOrVendorFailure(status: number): boolean {
  return status < 400 || status > 500 || [401, 402, 403, 408, 429].includes(status);
}

function failed(
  code: "content_rejected" | "invalid_parameters" | "upstream_error",
  said: string | undefined,
): TaskUpdate {
  return { status: "failed", error: { code, message: faultText(code, said) } };
}

/** The files in a result. */
function falFiles(result: JsonObject): readonly VendorFile[] {
  return filesIn(result, 0);
}

/** Depth at which files are found: `{"images":[{"url":…}]}`. */
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
