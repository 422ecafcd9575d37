/** fal's queue, from its documents and its client's source. */
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
export const falSecret = "operators-id:operators-secret";

const fluxInput: Readonly<Record<string, Rule>> = {
  prompt: "string",
  negative_prompt: "string",
  image_size: "object",
  image_url: "string",
  num_images: [1, 2, 3, 4],
  num_inference_steps: "integer",
  guidance_scale: "number",
  output_format: ["png", "jpeg", "webp"],
  seed: "integer",
  acceleration: "string",
};
const klingInput: Readonly<Record<string, Rule>> = {
  prompt: "string",
  negative_prompt: "string",
  image_url: "string",
  duration: ["5", "10"],
  aspect_ratio: "string",
  seed: "integer",
};
const veoInput: Readonly<Record<string, Rule>> = { ...klingInput, duration: ["4s", "6s", "8s"] };
const soundInput: Readonly<Record<string, Rule>> = {
  text: "string",
  prompt: "string",
  voice: "string",
  speed: "number",
  emotion: ["happy", "sad"],
  duration: "string",
};

const inputs: ReadonlyMap<string, Readonly<Record<string, Rule>>> = new Map([
  ["/fal-ai/flux/dev", fluxInput],
  ["/fal-ai/kling-video/v2/master/text-to-video", klingInput],
  ["/fal-ai/veo3", veoInput],
  ["/fal-ai/minimax/speech-02", soundInput],
]);

/** An error in its words. */
export function falSays(status: number, detail: string, type = ""): TaskAnswer {
  if (type === "") return { status, body: { detail } };
  return { status, body: { detail: [{ loc: ["body", "prompt"], msg: detail, type }] } };
}

interface Job {
  /** `owner/app`: all that its addresses have of its model's name. */
  readonly app: string;
  readonly json: JsonObject;
  looks: number;
  isStopped: boolean;
}

/** Starts it. A job is done at the second look. */
export function startFal(): Promise<SimulatedVendor> {
  const jobs = new Map<string, Job>();
  const submit = ({ url, json = {} }: TaskArrived, origin: string): TaskAnswer => {
    const rules = inputs.get(url);
    if (rules === undefined) return falSays(404, `Application "${url.slice(1)}" not found`);
    if (textIn(json["prompt"]).includes("forbidden")) {
      return falSays(422, "The content was flagged.", "content_policy_violation");
    }
    const wrong = wrongMember(json, rules);
    if (wrong !== undefined) return falSays(422, `${wrong.name} is not valid`, "value_error");
    const id = `764cabcf-b745-4b3e-ae38-${jobs.size + 1}`;
    const [, owner = "", app = ""] = url.split("/");
    jobs.set(id, { app: `${owner}/${app}`, json, looks: 0, isStopped: false });
    const at = `${origin}/${owner}/${app}/requests/${id}`;
    const urls = { response_url: at, status_url: `${at}/status`, cancel_url: `${at}/cancel` };
    const body = { status: "IN_QUEUE", request_id: id, queue_position: 0, ...urls };
    return { status: 200, body, isWork: true };
  };
  return startVendor((asked, origin) => {
    const { method, url, headers, json } = asked;
    if (headers.authorization !== `Key ${falSecret}`) {
      return falSays(401, "Cannot access application. Authentication is required.");
    }
    const [, app = "", id = "", rest = ""] =
      /^\/([\w-]+\/[\w-]+)\/requests\/([\w-]+)(\/\w+)?$/.exec(url) ?? [];
    if (method === "POST" && id === "") return submit(asked, origin);
    const job = jobs.get(id);
    if (job === undefined || job.app !== app) return falSays(404, "Request not found");
    if (method === "GET" && rest === "/status") return statusOf(job);
    if (method === "GET" && rest === "") return resultOf(job);
    if (method !== "PUT" || rest !== "/cancel") return falSays(405, "Method Not Allowed");
    if (json !== undefined) return falSays(422, "no body is wanted");
    if (job.looks >= 2) return { status: 400, body: { status: "ALREADY_COMPLETED" } };
    job.isStopped = true;
    return { status: 202, body: { status: "CANCELLATION_REQUESTED" } };
  });
}

function statusOf(job: Job): TaskAnswer {
  job.looks += 1;
  if (job.looks < 2 && !job.isStopped) return { status: 202, body: { status: "IN_PROGRESS" } };
  return { status: 200, body: { status: "COMPLETED" } };
}

function resultOf({ app, json, looks, isStopped }: Job): TaskAnswer {
  if (isStopped) return falSays(400, "Request was cancelled");
  if (looks < 2) return falSays(400, "Request is still in progress");
  const file = "https://v3.fal.media/files/a/1";
  if (app === "fal-ai/flux") {
    const { image_size: size, num_images: n = 1 } = json;
    const { width = 1_024, height = 768 } = (size ?? {}) as { width?: number; height?: number };
    const images = Array.from({ length: Number(n) }, () => ({
      url: `${file}.png`,
      width,
      height,
      content_type: "image/png",
    }));
    const units = images.length * Math.ceil((width * height) / 1_000_000);
    return { status: 200, headers: billed(units), body: { images, seed: 1, prompt: "" } };
  }
  const seconds = Number.parseInt(textIn(json["duration"]) || "4", 10);
  if (app === "fal-ai/minimax") {
    return { status: 200, body: { audio: { url: `${file}.mp3` }, duration_ms: 4_000 } };
  }
  return { status: 200, headers: billed(seconds), body: { video: { url: `${file}.mp4` } } };
}

function billed(units: number): Readonly<Record<string, string>> {
  return { "x-fal-billable-units": units.toFixed(2) };
}
