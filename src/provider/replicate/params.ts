/**
 * Parameters of predictions. Each Replicate model has its own input; these are the names that most
 * models share.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { refuseStored } from "../../dialect/features/guard.ts";
import { decodeUri } from "../../wire/json/escapes.ts";
import { isRecord } from "../../wire/json/value.ts";
import {
  aspectRatioParam,
  extraParam,
  fileParam,
  mapParams,
  negativePromptParam,
  numberParam,
  vendorTextParam,
  paramsObject,
  promptParam,
  seedParam,
  stringParam,
  stringsParam,
  requestedSeconds,
  integerParam,
  lengthRules,
  enumParam,
  type Params,
} from "../task-params.ts";
import type { TaskUnits, UnitModel } from "../task.ts";

const promptMax = 32_000;

/** The parameters of a model type and Replicate's names for them. */
interface Form {
  readonly title: string;
  readonly members: Params;
  readonly names: ReadonlyMap<string, string>;
  readonly required?: readonly string[];
  readonly oneOf?: readonly string[];
}

const image: Form = {
  title: "imageParams",
  required: ["prompt"],
  members: {
    prompt: promptParam(promptMax),
    negativePrompt: negativePromptParam(promptMax),
    imageUrls: {
      type: "array",
      description:
        "An image to start from; for more than one use the model's own parameter, in extra",
      items: fileParam("An image"),
      minItems: 1,
      maxItems: 1,
    },
    maskUrl: fileParam("Mask: the part of the image to change"),
    strength: {
      type: "number",
      description: "How far to deviate from the image",
      minimum: 0,
      maximum: 1,
    },
    aspectRatio: aspectRatioParam,
    n: integerParam("Number of images; absent counts as 1", { least: 1, most: 4 }),
    steps: integerParam("Number of steps", { least: 1, most: 200 }),
    guidanceScale: {
      type: "number",
      description: "Guidance scale: how closely to follow the prompt",
      minimum: 0,
      maximum: 50,
    },
    outputFormat: enumParam("File format", ["png", "jpg", "jpeg", "webp"]),
    seed: seedParam,
  },
  names: new Map([
    ["prompt", "prompt"],
    ["negativePrompt", "negative_prompt"],
    ["maskUrl", "mask"],
    ["strength", "prompt_strength"],
    ["aspectRatio", "aspect_ratio"],
    ["n", "num_outputs"],
    ["steps", "num_inference_steps"],
    ["guidanceScale", "guidance_scale"],
    ["outputFormat", "output_format"],
    ["seed", "seed"],
  ]),
};

const video: Form = {
  title: "videoParams",
  required: ["prompt"],
  members: {
    prompt: promptParam(promptMax),
    negativePrompt: negativePromptParam(promptMax),
    imageUrl: fileParam("The first frame"),
    duration: integerParam("Length in seconds", { least: 1, most: 60 }),
    aspectRatio: aspectRatioParam,
    resolution: vendorTextParam("Resolution, such as 720p or 1080p", 16),
    fps: integerParam("Frames per second", { least: 1, most: 120 }),
    seed: seedParam,
  },
  names: new Map([
    ["prompt", "prompt"],
    ["negativePrompt", "negative_prompt"],
    ["imageUrl", "image"],
    ["duration", "duration"],
    ["aspectRatio", "aspect_ratio"],
    ["resolution", "resolution"],
    ["fps", "fps"],
    ["seed", "seed"],
  ]),
};

const audio: Form = {
  title: "audioParams",
  oneOf: ["text", "prompt"],
  members: {
    text: { ...promptParam(promptMax), description: "What to say" },
    prompt: promptParam(promptMax),
    lyrics: { ...promptParam(promptMax), description: "What to sing" },
    audioUrl: fileParam("A recording to start from"),
    voice: vendorTextParam("Voice, by the model's name for it", 128),
    speed: { type: "number", description: "Speed; 1 is normal", minimum: 0.25, maximum: 4 },
    duration: integerParam("Length in seconds", { least: 1, most: 600 }),
    seed: seedParam,
  },
  names: new Map([
    ["text", "text"],
    ["prompt", "prompt"],
    ["lyrics", "lyrics"],
    ["audioUrl", "audio"],
    ["voice", "voice"],
    ["speed", "speed"],
    ["duration", "duration"],
    ["seed", "seed"],
  ]),
};

/**
 * Members that would make a model produce more than is charged: the price is computed from `n` and
 * `duration`.
 */
const multipliers = [
  "num_outputs",
  "num_images",
  "number_of_images",
  "num_samples",
  "batch_size",
  "max_images",
  "sequential_image_generation",
  "duration",
  "seconds",
  "length",
  "num_frames",
  "frames",
  "max_frames",
  "video_length",
  "audio_length",
  "webhook",
];

function formOf(type: ModelType): Form {
  if (type === ModelType.VIDEO) return video;
  return type === ModelType.AUDIO ? audio : image;
}

/** The parameters of a model's tasks. */
export function replicateSchema({ type, prices }: ModelConfig): JsonObject {
  const { title, members, names, required = [], oneOf = [] } = formOf(type);
  const closed = extraParam([...names.values(), ...multipliers]);
  return paramsObject(
    title,
    { ...members, extra: closed },
    { oneOf, ...lengthRules(required, { type, prices }) },
  );
}

/** The `input` of a prediction. */
export function replicateInput(type: ModelType, params: JsonObject): JsonObject {
  const input = mapParams(params, formOf(type).names);
  const [imageUrl] = stringsParam(params, "imageUrls");
  return imageUrl === undefined ? input : { ...input, image: imageUrl };
}

/** Implements {@link VendorTasks.assumedSeconds}. */
export const assumedSeconds = 10;

/** Implements {@link VendorTasks.units}. */
export function replicateUnits(params: JsonObject, { type }: UnitModel): TaskUnits {
  if (type === ModelType.IMAGE) return { images: numberParam(params, "n", 1) };
  const said = stringParam(params, "text") ?? stringParam(params, "prompt") ?? "";
  const seconds = requestedSeconds(params, type);
  return { seconds, inputTokens: Buffer.byteLength(said) };
}

/** Returns the Replicate file that a URL refers to, and its host; undefined for other URLs. */
export function fileIn(text: string): { readonly id: string; readonly host: string } | undefined {
  // Parsed as the URL standard does, which ignores control characters, so that no spelling of a URL
  // escapes.
  const url = /^[\0- ]*h/i.test(text) ? URL.parse(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  const [, id] = /\/v1\/+files\/+([^/]+)/i.exec(decodeUri(url.pathname)) ?? [];
  return id === undefined ? undefined : { id, host: url.hostname };
}

/**
 * Refuses references to files of Replicate's account anywhere in the parameters of a task.
 *
 * @param apiHost the configured host, besides Replicate's own
 * @throws GatewayError INVALID_REQUEST
 */
export function refuseFiles(value: JsonValue, path: string, apiHost: string): void {
  if (typeof value === "string") {
    const host = fileIn(value)?.host.replace(/\.$/, "");
    if (host !== apiHost && !/(?:^|\.)replicate\.com$/.test(host ?? "")) return;
    throw refuseStored(path, "send the file itself, or a public address");
  }
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) refuseFiles(each, `${path}[${at}]`, apiHost);
  } else if (isRecord(value)) {
    for (const [name, each] of Object.entries(value)) {
      refuseFiles(each, `${path}.${name}`, apiHost);
    }
  }
}
