/**
 * Pictures and films of DashScope. A task carries no reference of ours that it could be found by, and nobody
 * knows a repetition: what got no answer is never asked again.
 */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import {
  dashscopeCode,
  dashscopeFault,
  dashscopeMessage,
  isUnwantedContent,
} from "./dashscope-fault.ts";
import { dashscopeNews, dashscopeTaskId } from "./dashscope-news.ts";
import {
  dashscopeBody,
  dashscopeSchema,
  dashscopeUnits,
  secondsUsual,
} from "./dashscope-params.ts";
import { bearer } from "./http-vendor.ts";
import {
  createTaskHttp,
  isOk,
  jsonOf,
  type RefusalWords,
  submitTask,
  type TaskHttp,
  troubleOf,
} from "./task-http.ts";
import {
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskNews,
  type TaskSubmission,
  VendorTrouble,
} from "./task.ts";

const images = "/api/v1/services/aigc/text2image/image-synthesis";
const films = "/api/v1/services/aigc/video-generation/video-synthesis";

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
      path: type === ModelType.VIDEO ? films : images,
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
