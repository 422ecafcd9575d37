/** DashScope's tasks, from its documents and its clients' source. */
import type { JsonObject } from "@bufbuild/protobuf";
import {
  type Rule,
  type SimulatedVendor,
  startVendor,
  type TaskAnswer,
  type TaskArrived,
  textIn,
  wrongMember,
} from "./simulated.ts";

/** The accepted secret. */
export const dashscopeSecret = "sk-operators-own-dashscope";

interface Form {
  readonly models: RegExp;
  readonly input: Readonly<Record<string, Rule>>;
  readonly parameters: Readonly<Record<string, Rule>>;
}

/** JSON's other type. */
const flag = [true, false] as unknown as Rule;

const forms: ReadonlyMap<string, Form> = new Map([
  [
    "/api/v1/services/aigc/text2image/image-synthesis",
    {
      models: /^wan2\.2-t2i-flash$/,
      input: { prompt: "string", negative_prompt: "string" },
      parameters: {
        size: ["1280*720", "1024*1024"],
        n: [1, 2, 3, 4],
        seed: "integer",
        watermark: flag,
        prompt_extend: flag,
        style: "string",
      },
    },
  ],
  [
    "/api/v1/services/aigc/image2image/image-synthesis",
    {
      models: /^wan2\.5-i2i-preview$/,
      input: { prompt: "string", negative_prompt: "string", images: "strings" },
      parameters: {
        size: ["1280*1280", "1024*1024"],
        n: [1, 2, 3, 4],
        seed: "integer",
        watermark: flag,
        prompt_extend: flag,
      },
    },
  ],
  [
    "/api/v1/services/aigc/video-generation/video-synthesis",
    {
      models: /^wan2\.6-i2v$/,
      input: {
        prompt: "string",
        negative_prompt: "string",
        img_url: "string",
        audio_url: "string",
      },
      parameters: {
        resolution: ["720P", "1080P"],
        duration: [5, 10],
        audio: flag,
        seed: "integer",
      },
    },
  ],
]);

/** An error in its words. */
function dashscopeError(status: number, code: string, message: string): TaskAnswer {
  return { status, body: { code, message, request_id: "7574ee8f" } };
}

/** Refusals. */
export const dashscopeSays = {
  money: dashscopeError(400, "Arrearage", "Access denied, your account is overdue."),
  invalid: dashscopeError(400, "InvalidParameter", "size is not supported"),
  busy: {
    ...dashscopeError(429, "Throttling.RateQuota", "Requests rate limit exceeded"),
    headers: { "retry-after": "7" },
  },
  full: dashscopeError(503, "ModelUnavailable", "Model is unavailable, please try again later."),
  broken: dashscopeError(500, "InternalError", "An internal error has occured."),
} as const;

/** A task with a fate. */
function dashscopeTask(
  id: string,
  status: string,
  output: JsonObject = {},
  usage?: JsonObject,
): TaskAnswer {
  const told = { task_id: id, task_status: status, ...output };
  return { status: 200, body: { request_id: "7574ee8f", output: told, ...(usage && { usage }) } };
}

/** Starts it. A task is done at the second look. */
export function startDashscope(): Promise<SimulatedVendor> {
  const tasks = new Map<string, { looks: number; readonly parameters: JsonObject; path: string }>();
  const submit = (asked: TaskArrived, form: Form): TaskAnswer => {
    const refused = refusal(asked, form);
    if (refused !== undefined) return refused;
    const id = `86ecf553-${tasks.size + 1}`;
    const parameters = (asked.json?.["parameters"] ?? {}) as JsonObject;
    tasks.set(id, { looks: 0, parameters, path: asked.url });
    return { ...dashscopeTask(id, "PENDING"), isWork: true };
  };
  return startVendor((asked) => {
    const { method, url, headers } = asked;
    if (headers.authorization !== `Bearer ${dashscopeSecret}`) {
      return dashscopeError(401, "InvalidApiKey", "Invalid API-key provided.");
    }
    const form = forms.get(url);
    if (method === "POST" && form !== undefined) return submit(asked, form);
    const [, id = "", cancel] = /^\/api\/v1\/tasks\/([\w-]+)(\/cancel)?$/.exec(url) ?? [];
    const task = tasks.get(id);
    if (task === undefined) return dashscopeTask(id, "UNKNOWN");
    if (cancel !== undefined && method === "POST") {
      if (task.looks === 0) return { status: 200, body: { request_id: "7574ee8f" } };
      return dashscopeError(400, "UnsupportedOperation", "Failed to cancel the task.");
    }
    task.looks += 1;
    if (task.looks < 2) return dashscopeTask(id, "RUNNING");
    const url1 = "https://dashscope-result.oss.test/1?Expires=1";
    if (task.path.includes("video")) {
      const { duration = 5 } = task.parameters;
      return dashscopeTask(id, "SUCCEEDED", { video_url: url1 }, { duration, video_count: 1 });
    }
    const results = Array.from({ length: Number(task.parameters["n"] ?? 4) }, () => ({
      url: url1,
    }));
    return dashscopeTask(id, "SUCCEEDED", { results }, { image_count: results.length });
  });
}

function refusal({ json = {}, headers }: TaskArrived, form: Form): TaskAnswer | undefined {
  const invalid = (message: string) => dashscopeError(400, "InvalidParameter", message);
  if (headers["x-dashscope-async"] !== "enable") {
    return dashscopeError(403, "AccessDenied", "no synchronous calls");
  }
  if (!form.models.test(textIn(json["model"]))) {
    return dashscopeError(404, "ModelNotFound", "Model can not be found.");
  }
  const input = (json["input"] ?? {}) as JsonObject;
  const wrong =
    wrongMember(json, { model: "string", input: "object", parameters: "object" }) ??
    wrongMember(input, form.input) ??
    wrongMember((json["parameters"] ?? {}) as JsonObject, form.parameters);
  if (wrong !== undefined) return invalid(`${wrong.name} is not valid`);
  if (!textIn(input["prompt"]).includes("forbidden")) return undefined;
  return dashscopeError(
    400,
    "DataInspectionFailed",
    "Input data may contain inappropriate content.",
  );
}
