/**
 * Tasks of the demo vendor: real images and audio, computed from the prompt.
 *
 * A task's id contains everything about it, so nothing is stored and any process can produce the
 * result. Only the submitting process knows progress and cancellation. To all others the task is
 * complete, since it takes less time than they need to poll it.
 */
import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { renderImage } from "./image.ts";
import { renderTune } from "./audio.ts";
import {
  numberParam,
  paramsObject,
  promptParam,
  seedParam,
  stringParam,
  integerParam,
  enumParam,
} from "../task-params.ts";
import {
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskUpdate,
  type TaskOutcome,
  TaskRefused,
  type TaskSubmission,
  VendorReplyError,
} from "../task.ts";

/** Duration of tasks by model; `slow` is for watching and cancelling. */
const durationsMs: ReadonlyMap<string, number> = new Map([
  ["image", 300],
  ["audio", 300],
  ["slow", 20_000],
]);

interface Running {
  readonly startMs: number;
  readonly durationMs: number;
  readonly timer: NodeJS.Timeout;
  isCancelled: boolean;
}

/** Creates the adapter. */
export function createDemoTasks(): OpenTasks {
  const running = new Map<string, Running>();
  const submit = (task: TaskSubmission): Submitted => {
    const durationMs = durationsMs.get(task.model);
    if (durationMs === undefined) throw unknownModel();
    const vendorTaskId = idOf(task);
    if (running.has(vendorTaskId)) return { vendorTaskId };
    const end = (): void => {
      running.delete(vendorTaskId);
      task.onUpdate?.();
    };
    const timer = setTimeout(end, durationMs).unref();
    running.set(vendorTaskId, {
      startMs: performance.now(),
      durationMs,
      timer,
      isCancelled: false,
    });
    return { vendorTaskId };
  };
  const poll = async (vendorTaskId: string): Promise<TaskUpdate> => {
    const task = running.get(vendorTaskId);
    if (task?.isCancelled === true) return { status: "cancelled" };
    const share = task && (performance.now() - task.startMs) / task.durationMs;
    if (share !== undefined && share < 1) {
      return { status: "running", progress: Math.floor(share * 100) };
    }
    return { status: "completed", outcome: await outcomeOf(vendorTaskId) };
  };
  const cancel = (vendorTaskId: string): CancelAnswer => {
    const task = running.get(vendorTaskId);
    if (task === undefined) return "too_late";
    task.isCancelled = true;
    return "cancelled";
  };
  return {
    resubmit: "idempotent",
    types: new Set([ModelType.IMAGE, ModelType.AUDIO]),
    canCancel: true,
    submit: async (task) => submit(task),
    poll,
    cancel: async (vendorTaskId) => cancel(vendorTaskId),
    paramsSchema: ({ type }) => (type === ModelType.AUDIO ? audioSchema : imageSchema),
    units: (params, { type }) =>
      type === ModelType.AUDIO
        ? { seconds: numberParam(params, "duration", secondsDefault) }
        : { images: numberParam(params, "n", 1) },
    async close() {
      for (const { timer } of running.values()) clearTimeout(timer);
      running.clear();
    },
  };
}

const sizeDefault = "512x512";
const secondsDefault = 2;

const imageSchema = paramsObject(
  "imageParams",
  {
    prompt: promptParam(4_000),
    size: enumParam(
      "Width and height in pixels",
      ["256x256", sizeDefault, "1024x1024"],
      sizeDefault,
    ),
    n: integerParam("Number of images", { least: 1, most: 4, otherwise: 1 }),
    seed: seedParam,
  },
  { required: ["prompt"] },
);

const audioSchema = paramsObject(
  "audioParams",
  {
    text: { ...promptParam(4_000), description: "What the tune is made from" },
    prompt: { ...promptParam(4_000), description: "The same as text" },
    duration: integerParam("Length in seconds", {
      least: 1,
      most: 10,
      otherwise: secondsDefault,
    }),
    seed: seedParam,
  },
  { oneOf: ["text", "prompt"] },
);

/** A task id: type, attempt token, size, count and source. */
const idForm = /^demo-(image|audio)-([0-9a-f-]{1,64})-(\d+)-(\d+)-([0-9a-f]{32})$/;

function idOf({ attemptToken, type, params }: TaskSubmission): string {
  const isAudio = type === ModelType.AUDIO;
  const [width = "512"] = (stringParam(params, "size") ?? sizeDefault).split("x");
  const seconds = numberParam(params, "duration", secondsDefault);
  const kind = isAudio ? "audio" : "image";
  const extent = isAudio ? String(seconds) : width;
  const count = isAudio ? 1 : numberParam(params, "n", 1);
  return `demo-${kind}-${attemptToken}-${extent}-${count}-${digestOf(params)}`;
}

/** The source of a result: the same prompt and seed give the same result. */
function digestOf(params: JsonObject): string {
  const said = stringParam(params, "prompt") ?? stringParam(params, "text") ?? "";
  const source = JSON.stringify([said, numberParam(params, "seed", 0)]);
  return createHash("sha256").update(source).digest("hex").slice(0, 32);
}

/** @throws VendorReplyError if the id is not one of ours */
async function outcomeOf(vendorTaskId: string): Promise<TaskOutcome> {
  const [, kind, , extent = "", count = "", digest = ""] = idForm.exec(vendorTaskId) ?? [];
  if (kind === undefined) throw new VendorReplyError(404, "no such demo task");
  const source = Buffer.from(digest, "hex");
  if (kind === "audio") {
    const bytes = renderTune(source, Number(extent));
    return {
      files: [{ bytes, contentType: "audio/wav" }],
      units: { seconds: Number(extent) },
    };
  }
  const indexes = Array.from({ length: Number(count) }, (_none, index) => index);
  const images = await Promise.all(
    indexes.map((index) => renderImage(source, { side: Number(extent), index })),
  );
  return {
    files: images.map((bytes) => ({ bytes, contentType: "image/png" })),
    units: { images: images.length },
  };
}

function unknownModel(): TaskRefused {
  const text = "The model is not available at its vendor now; try another model or try later";
  return new TaskRefused("upstream_error", text, true, { fault: "model" });
}
