/**
 * Tasks of the demo vendor: real pictures and real sound, computed from the prompt alone.
 *
 * A task's id says all that it is, so that nothing has to be kept: any process can tell its result. Only how far
 * it is and whether it was stopped is known to the process that it was submitted to; to all others it is done,
 * for it takes less than the time in which they could get at it.
 */
import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { drawPicture } from "./image.ts";
import { playTune } from "./audio.ts";
import {
  numberParam,
  paramsObject,
  promptParam,
  seedParam,
  stringParam,
  wholeParam,
  wordParam,
} from "../task-params.ts";
import {
  type CancelAnswer,
  type OpenTasks,
  type Submitted,
  type TaskNews,
  type TaskOutcome,
  TaskRefused,
  type TaskSubmission,
  VendorTrouble,
} from "../task.ts";

/** The demo vendor's models that run tasks, and how long each takes, in milliseconds: `slow` is there to be
 * watched and cancelled. */
const durationsMs: ReadonlyMap<string, number> = new Map([
  ["image", 300],
  ["audio", 300],
  ["slow", 20_000],
]);

interface Running {
  readonly startMs: number;
  readonly durationMs: number;
  readonly timer: NodeJS.Timeout;
  /** How much of it was done when it was stopped, from 0 to below 1; `undefined`: it was not. */
  stoppedAt?: number;
}

/** Makes them. */
export function createDemoTasks(): OpenTasks {
  const running = new Map<string, Running>();
  const submit = (task: TaskSubmission): Submitted => {
    const durationMs = durationsMs.get(task.model);
    if (durationMs === undefined) throw unknownModel();
    const vendorTaskId = idOf(task);
    if (running.has(vendorTaskId)) return { vendorTaskId };
    const end = (): void => {
      running.delete(vendorTaskId);
      task.onNews?.();
    };
    const timer = setTimeout(end, durationMs).unref();
    running.set(vendorTaskId, { startMs: performance.now(), durationMs, timer });
    return { vendorTaskId };
  };
  const poll = async (vendorTaskId: string): Promise<TaskNews> => {
    const task = running.get(vendorTaskId);
    if (task?.stoppedAt !== undefined) return cancelled(vendorTaskId, task.stoppedAt);
    const share = task && shareOf(task);
    if (share !== undefined && share < 1) {
      return { status: "running", progress: Math.floor(share * 100) };
    }
    return { status: "completed", outcome: await outcomeOf(vendorTaskId) };
  };
  const cancel = (vendorTaskId: string): CancelAnswer => {
    const task = running.get(vendorTaskId);
    if (task === undefined) return "too_late";
    task.stoppedAt ??= Math.min(0.99, shareOf(task));
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
    size: wordParam(
      "Width and height in pixels",
      ["256x256", sizeDefault, "1024x1024"],
      sizeDefault,
    ),
    n: wholeParam("How many pictures", { least: 1, most: 4, otherwise: 1 }),
    seed: seedParam,
  },
  { required: ["prompt"] },
);

const audioSchema = paramsObject(
  "audioParams",
  {
    text: { ...promptParam(4_000), description: "What the tune is made from" },
    prompt: { ...promptParam(4_000), description: "The same as text" },
    duration: wholeParam("How long, in seconds", { least: 1, most: 10, otherwise: secondsDefault }),
    seed: seedParam,
  },
  { oneOf: ["text", "prompt"] },
);

/** What a task's id says: what to make, by which attempt, how large, how many, and from what. */
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

/** What a result depends on: the same prompt and seed make the same. */
function digestOf(params: JsonObject): string {
  const said = stringParam(params, "prompt") ?? stringParam(params, "text") ?? "";
  const source = JSON.stringify([said, numberParam(params, "seed", 0)]);
  return createHash("sha256").update(source).digest("hex").slice(0, 32);
}

function shareOf({ startMs, durationMs }: Running): number {
  return (performance.now() - startMs) / durationMs;
}

/** It works on one picture, and on one second, after the other: those that were done are taken for. */
function cancelled(vendorTaskId: string, share: number): TaskNews {
  const [, kind, , extent = "", count = ""] = idForm.exec(vendorTaskId) ?? [];
  const isAudio = kind === "audio";
  const done = Math.floor(share * Number(isAudio ? extent : count));
  if (!(done > 0)) return { status: "cancelled" };
  return { status: "cancelled", taken: { units: isAudio ? { seconds: done } : { images: done } } };
}

/** @throws VendorTrouble where the id is none of ours */
async function outcomeOf(vendorTaskId: string): Promise<TaskOutcome> {
  const [, kind, , extent = "", count = "", digest = ""] = idForm.exec(vendorTaskId) ?? [];
  if (kind === undefined) throw new VendorTrouble(404, "no such demo task");
  const source = Buffer.from(digest, "hex");
  if (kind === "audio") {
    const bytes = playTune(source, Number(extent));
    return {
      files: [{ bytes, contentType: "audio/wav" }],
      units: { seconds: Number(extent) },
    };
  }
  const indexes = Array.from({ length: Number(count) }, (_none, index) => index);
  const pictures = await Promise.all(
    indexes.map((index) => drawPicture(source, { side: Number(extent), index })),
  );
  return {
    files: pictures.map((bytes) => ({ bytes, contentType: "image/png" })),
    units: { images: pictures.length },
  };
}

function unknownModel(): TaskRefused {
  const text = "The model is not available at its vendor now; try another model or try later";
  return new TaskRefused("upstream_error", text, true, { fault: "model" });
}
