/**
 * Predictions of Replicate. A prediction carries no reference of ours and repeats are not
 * recognised, so a submit without an answer is never repeated.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { bearerHeader, baseUrlEndsWith } from "../http-vendor.ts";
import {
  refuseFiles,
  replicateInput,
  replicateSchema,
  replicateUnits,
  assumedSeconds,
} from "./params.ts";
import {
  contentTypes,
  createTaskHttp,
  faultText,
  isOk,
  parseJsonReply,
  type RefusalReader,
  submitTask,
  type TaskHttp,
  type TaskReply,
  readReplyError,
} from "../task-http.ts";
import type { NativeHeadersFor } from "../native.ts";
import { estimatedTokens, requestedSecondsMax, stringParam } from "../task-params.ts";
import {
  VendorReplyError,
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskFault,
  type TaskUnits,
  type TaskUpdate,
  type TaskSubmission,
  type VendorFile,
  type VendorFault,
} from "../task.ts";

/** Creates the adapter. */
export function createReplicateTasks(config: VendorConfig): OpenTasks {
  const http = createTaskHttp(config, {
    credential: bearerHeader(config.apiKey),
    isSynchronous: false,
  });
  const version = baseUrlEndsWith(config, "/v1") ? "" : "/v1";
  const apiHost = new URL(config.baseUrl).hostname;
  const at = (vendorTaskId: string): string =>
    `${version}/predictions/${encodeURIComponent(vendorTaskId)}`;
  return {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO]),
    canCancel: true,
    // Replicate allows 3,000 requests a minute, other than creating predictions.
    pollsPerSecond: 50,
    submit: (task) => submit(http, task, version),
    async poll(vendorTaskId, signal) {
      const reply = await http.send({ method: "GET", path: at(vendorTaskId), signal });
      return updateOf(predictionIn(reply));
    },
    async cancel(vendorTaskId, signal) {
      const path = `${at(vendorTaskId)}/cancel`;
      return cancelAnswer(await http.send({ method: "POST", path, signal }));
    },
    callbacks: {
      taskIdIn: (body) => idIn(parseJsonReply({ body })),
      // A prediction states its callback URL, and only its submit can have set it.
      async isOurs(vendorTaskId, attemptToken, signal) {
        const reply = await http.send({ method: "GET", path: at(vendorTaskId), signal });
        if (reply.status === 404) return false;
        const webhook = stringParam(predictionIn(reply), "webhook") ?? "";
        return webhook.endsWith(`/${attemptToken}`);
      },
    },
    paramsSchema: replicateSchema,
    checkParams: (params, field) => refuseFiles(params, field, apiHost),
    units: replicateUnits,
    assumedSeconds: assumedSeconds,
    secondsMax: requestedSecondsMax,
    close: () => http.close(),
  };
}

async function submit(http: TaskHttp, task: TaskSubmission, version: string): Promise<Submitted> {
  const { model, type, params, signal, callbackUrl } = task;
  const target = targetOf(model);
  const json: JsonObject = {
    ...target.body,
    input: replicateInput(type, params),
    ...(callbackUrl !== undefined && {
      webhook: callbackUrl,
      webhook_events_filter: ["completed"],
    }),
  };
  const path = `${version}${target.path}`;
  const reply = await submitTask(http, { method: "POST", path, json, signal }, words);
  const vendorTaskId = idIn(parseJsonReply(reply));
  if (vendorTaskId !== undefined) return { vendorTaskId };
  throw new VendorReplyError(reply.status, "answered a prediction without its id");
}

function idIn(prediction: JsonObject | undefined): string | undefined {
  const id = prediction?.["id"];
  return typeof id === "string" && /^[\w-]{1,128}$/.test(id) ? id : undefined;
}

/**
 * `owner/name` runs the newest version; `owner/name:version`, or a version alone, runs that one.
 */
function targetOf(model: string): { readonly path: string; readonly body: JsonObject } {
  const [name = "", version] = model.split(":");
  if (version !== undefined) return { path: "/predictions", body: { version } };
  if (!name.includes("/")) return { path: "/predictions", body: { version: name } };
  return {
    path: `/models/${name.split("/").map(encodeURIComponent).join("/")}/predictions`,
    body: {},
  };
}

const words: RefusalReader = {
  faultOf: replicateFault,
  retryAfterOf: replicateRetryAfter,
  messageOf: detailOf,
  isContent: (body) => isContent(detailOf(body) ?? ""),
  isSynchronous: false,
};

/**
 * Implements {@link Vendor.faultOf}: a version that does not exist, or is not available to us,
 * arrives as a wrong parameter.
 */
export function replicateFault(status: number, body: Buffer): VendorFault | undefined {
  const text = `${titleOf(body)} ${detailOf(body) ?? ""}`;
  if (status === 422 && /\bversion does not exist\b|\bnot permitted\b/i.test(text)) return "model";
  return status === 402 || /\binsufficient credit\b/i.test(text) ? "money" : undefined;
}

/** Implements {@link Vendor.retryAfterOf}: `"retry_after": 12`, or a sentence. */
export function replicateRetryAfter(body: Buffer): number | undefined {
  const retryAfter = parseJsonReply({ body })?.["retry_after"];
  const [, worded] = /\bresets in ~?(\d{1,5})s\b/.exec(detailOf(body) ?? "") ?? [];
  const seconds = typeof retryAfter === "number" ? retryAfter : Number(worded);
  return Number.isFinite(seconds) ? Math.min(Math.max(Math.ceil(seconds), 1), 86_400) : undefined;
}

function detailOf(body: Buffer): string | undefined {
  const detail = parseJsonReply({ body })?.["detail"];
  return typeof detail === "string" ? detail : undefined;
}

function titleOf(body: Buffer): string {
  const title = parseJsonReply({ body })?.["title"];
  return typeof title === "string" ? title : "";
}

function isContent(text: string): boolean {
  return /\bNSFW\b|\(E005\)|flagged as sensitive|\bcontent (policy|moderation)\b/i.test(text);
}

/** @throws VendorReplyError if the body is no prediction */
function predictionIn(reply: TaskReply): JsonObject {
  if (!isOk(reply)) throw readReplyError(reply, words);
  const prediction = parseJsonReply(reply);
  if (typeof prediction?.["status"] === "string") return prediction;
  throw new VendorReplyError(reply.status, "answered with something else than a prediction");
}

/** Reads the state of a prediction. An unknown status is inconclusive. @throws VendorReplyError */
function updateOf(prediction: JsonObject): TaskUpdate {
  const status = stringParam(prediction, "status") ?? "";
  switch (status) {
    case "starting":
    case "processing": {
      const progress = progressIn(prediction["logs"]);
      return { status: "running", ...(progress !== undefined && { progress }) };
    }
    case "succeeded":
      return succeeded(prediction);
    case "failed":
      return { status: "failed", error: failureOf(prediction["error"]) };
    case "canceled":
      return cancelled(prediction);
    // It never ran, so nothing is charged.
    case "aborted":
      return { status: "cancelled" };
    default:
      throw new VendorReplyError(200, `reported the unknown status ${status}`);
  }
}

/**
 * Reads the state of a prediction with any kind of output: strings are its text, and anything else
 * without files is still a result. @throws VendorReplyError
 */
export function predictionUpdate(
  prediction: JsonObject,
  _headersFor: NativeHeadersFor,
  { outputTokens }: TaskUnits = {},
): TaskUpdate {
  if (prediction["status"] !== "succeeded") return updateOf(prediction);
  if (outputTokens !== undefined) return textUpdate(prediction);
  const { output = null } = prediction;
  const files = filesIn(output, 0);
  const update = files.length > 0 ? succeeded(prediction) : undefined;
  if (update?.status === "completed") {
    const images = files.length;
    return {
      status: "completed",
      outcome: { ...update.outcome, units: { images, ...update.outcome.units } },
    };
  }
  const pieces = Array.isArray(output) ? output : [output];
  const isText = pieces.length > 0 && pieces.every((piece) => typeof piece === "string");
  return {
    status: "completed",
    outcome: { files: [], ...(isText && { text: pieces.join("") }) },
  };
}

/** The end of a TEXT model. An address in its text is no file. */
function textUpdate({ output = null, metrics = null, input = null }: JsonObject): TaskUpdate {
  const text = stringsIn(output, 0).join("");
  const reported = isObject(metrics) ? metrics : {};
  const inputTokens = numberAt(reported, "input_token_count");
  const outputTokens = numberAt(reported, "output_token_count");
  const usage =
    inputTokens + outputTokens > 0
      ? { inputTokens, outputTokens }
      : estimatedTokens(stringsIn(input, 0).join(""), text);
  return { status: "completed", outcome: { files: [], text, usage } };
}

function stringsIn(value: JsonValue, depth: number): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null || depth === depthMax) return [];
  return Object.values(value).flatMap((each) => stringsIn(each, depth + 1));
}

function succeeded({ output = null, metrics = null }: JsonObject): TaskUpdate {
  const files = filesIn(output, 0);
  if (files.length === 0) {
    const message = `${faultText("upstream_error", undefined)} (no result file)`;
    return { status: "failed", error: { code: "upstream_error", message } };
  }
  const seconds = isObject(metrics) ? metrics["video_output_duration_seconds"] : undefined;
  const isReported = typeof seconds === "number" && seconds > 0;
  return { status: "completed", outcome: { files, ...(isReported && { units: { seconds } }) } };
}

/**
 * Replicate charges the time that a cancelled prediction ran; the part that has a unit of the price
 * is charged here.
 */
function cancelled({ output = null, metrics = null }: JsonObject): TaskUpdate {
  const reported = isObject(metrics) ? metrics : {};
  if (numberAt(reported, "predict_time") === 0) return { status: "cancelled" };
  const images = filesIn(output, 0).length;
  const seconds = numberAt(reported, "video_output_duration_seconds");
  const inputTokens = numberAt(reported, "input_token_count");
  const outputTokens = numberAt(reported, "output_token_count");
  const isCounted = inputTokens + outputTokens > 0;
  const reportedCost = {
    units: { images, seconds },
    ...(isCounted && { usage: { inputTokens, outputTokens } }),
  };
  return { status: "cancelled", reportedCost };
}

/** 0 if it is absent. */
function numberAt(object: JsonObject, name: string): number {
  const value = object[name];
  return typeof value === "number" && value > 0 ? value : 0;
}

function failureOf(error: JsonValue | undefined): TaskFault {
  const said = typeof error === "string" ? error : undefined;
  const code = said !== undefined && isContent(said) ? "content_rejected" : "upstream_error";
  return { code, message: faultText(code, said) };
}

/** Depth at which files are found in an output: one URL, a list, or an object of them. */
const depthMax = 4;

function filesIn(output: JsonValue, depth: number): readonly VendorFile[] {
  if (typeof output === "string") return fileOf(output);
  if (typeof output !== "object" || output === null || depth === depthMax) return [];
  return Object.values(output).flatMap((each) => filesIn(each, depth + 1));
}

function fileOf(text: string): readonly VendorFile[] {
  const [, type, data] = /^data:([\w.+-]+\/[\w.+-]+)[^,]*;base64,([\s\S]+)$/.exec(text) ?? [];
  if (type !== undefined && data !== undefined) {
    return [{ bytes: Buffer.from(data, "base64"), contentType: type }];
  }
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return [];
  const ending = /\.([a-z0-9]{1,5})$/i.exec(url.pathname)?.[1]?.toLowerCase() ?? "";
  return [{ url: text, contentType: contentTypes[ending] ?? "application/octet-stream" }];
}

/** The last progress bar in the log, as the common library draws it: ` 40%|████      | 4/10`. */
function progressIn(logs: JsonValue | undefined): number | undefined {
  if (typeof logs !== "string") return undefined;
  const bars = logs.slice(-4_096).match(/(?:^|[\r\n])[^|\r\n]{0,64}?\b\d{1,3}%\s?\|/g);
  const percent = Number(/(\d{1,3})%/.exec(bars?.at(-1) ?? "")?.[1]);
  return Number.isNaN(percent) ? undefined : Math.min(percent, 100);
}

/** @throws VendorReplyError if the reply is inconclusive */
function cancelAnswer(reply: TaskReply): CancelAnswer {
  // A prediction that no longer exists ended long ago.
  if (reply.status === 404) return "too_late";
  const { status } = predictionIn(reply);
  if (status === "canceled" || status === "aborted") return "cancelled";
  return status === "succeeded" || status === "failed" ? "too_late" : "requested";
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
