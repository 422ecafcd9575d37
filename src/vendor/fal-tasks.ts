/**
 * Jobs in fal's queue. A job carries no reference of ours that it could be found by, and nobody knows a repetition:
 * what got no answer is never asked again. It does not say where its news go either, so none are asked for: whoever
 * had heard of an address could send them there.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { falDetail, falFault, isFalContent } from "./fal-fault.ts";
import { falBilled, secondsIn } from "./fal-meter.ts";
import {
  falApp,
  falCancelled,
  falFailure,
  falFiles,
  falJobId,
  falNews,
  isPassing,
} from "./fal-news.ts";
import { falInput, falSchema, falUnitsAsked, secondsUsual } from "./fal-params.ts";
import {
  createTaskHttp,
  faultText,
  isOk,
  jsonOf,
  type RefusalWords,
  submitTask,
  type TaskHttp,
  type TaskReply,
  troubleOf,
} from "./task-http.ts";
import {
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskNews,
  type TaskSubmission,
  type TaskUnits,
  VendorTrouble,
} from "./task.ts";

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
