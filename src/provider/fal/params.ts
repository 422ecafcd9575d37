/**
 * Parameters of fal jobs. Each fal model has its own input; these are the names that most models
 * share.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import {
  aspectRatioParam,
  extraParam,
  fileParam,
  mapParams,
  negativePromptParam,
  numberParam,
  vendorTextParam,
  type Params,
  paramsObject,
  promptParam,
  seedParam,
  sizeParam,
  stringParam,
  stringsParam,
  requestedSeconds,
  integerParam,
  lengthRules,
  enumParam,
} from "../task-params.ts";
import type { TaskUnits, UnitModel } from "../task.ts";

const promptMax = 32_000;

/** The parameters of a model type and fal's names for them. */
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
    size: sizeParam,
    aspectRatio: aspectRatioParam,
    n: integerParam("Number of images", { least: 1, most: 4, otherwise: 1 }),
    steps: integerParam("Number of steps", { least: 1, most: 200 }),
    guidanceScale: {
      type: "number",
      description: "Guidance scale: how closely to follow the prompt",
      minimum: 0,
      maximum: 50,
    },
    outputFormat: enumParam("File format", ["png", "jpeg", "webp"]),
    seed: seedParam,
  },
  names: new Map([
    ["prompt", "prompt"],
    ["negativePrompt", "negative_prompt"],
    ["maskUrl", "mask_url"],
    ["strength", "strength"],
    ["aspectRatio", "aspect_ratio"],
    ["n", "num_images"],
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
    seed: seedParam,
  },
  names: new Map([
    ["prompt", "prompt"],
    ["negativePrompt", "negative_prompt"],
    ["imageUrl", "image_url"],
    ["aspectRatio", "aspect_ratio"],
    ["resolution", "resolution"],
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
    ["audioUrl", "audio_url"],
    ["voice", "voice"],
    ["speed", "speed"],
    ["seed", "seed"],
  ]),
};

/** Members that request several images. */
export const falCountNames: readonly string[] = [
  "num_images",
  "num_outputs",
  "num_samples",
  "batch_size",
  "max_images",
  "n",
];

/** Members that request the length of a video or audio. */
export const falSecondsNames: readonly string[] = [
  "duration",
  "seconds_total",
  "duration_seconds",
  "seconds",
];

/**
 * Members that would make a model produce more than is charged: the price is computed from `n`,
 * `size` and `duration`.
 */
const multipliers = [
  ...falCountNames,
  ...falSecondsNames,
  "image_size",
  "width",
  "height",
  "image_url",
  "num_frames",
  "frames_per_second",
  "fps",
  "video_length",
  "audio_length",
  "generate_audio",
  "upscale_factor",
  "fal_webhook",
];

function formOf(type: ModelType): Form {
  if (type === ModelType.VIDEO) return video;
  return type === ModelType.AUDIO ? audio : image;
}

/** The parameters of a model's tasks. */
export function falSchema({ type, prices }: ModelConfig): JsonObject {
  const { title, members, names, required = [], oneOf = [] } = formOf(type);
  return paramsObject(
    title,
    { ...members, extra: extraParam([...names.values(), ...multipliers]) },
    {
      oneOf,
      ...lengthRules(required, { type, prices }),
    },
  );
}

/** The body of a job. @param model fal's name of the model */
export function falInput(type: ModelType, model: string, params: JsonObject): JsonObject {
  const input = mapParams(params, formOf(type).names);
  const [picture] = stringsParam(params, "imageUrls");
  const seconds = numberParam(params, "duration", 0);
  const size = sizeOf(params);
  return {
    ...input,
    ...(picture !== undefined && { image_url: picture }),
    ...(size !== undefined && { image_size: size }),
    ...(seconds > 0 && { duration: durationOf(model, seconds) }),
  };
}

/** Most models take a string, Google's one with a unit, some a number. */
function durationOf(model: string, seconds: number): string | number {
  if (/^fal-ai\/veo/.test(model)) return `${seconds}s`;
  return /^fal-ai\/(?:sora|ltx)/.test(model) ? seconds : String(seconds);
}

/** `undefined` lets the model choose. */
function sizeOf(
  params: JsonObject,
): { readonly width: number; readonly height: number } | undefined {
  const [width, height] = (stringParam(params, "size") ?? "").split(/[x*×]/).map(Number);
  return width && height ? { width, height } : undefined;
}

/** Assumed length of a video or audio, if none is requested or the model ignores the request. */
export const assumedSeconds = 10;

/** Implements {@link VendorTasks.units}. Images of more than a megapixel are billed as several. */
export function falParamsUnits(params: JsonObject, { type }: UnitModel): TaskUnits {
  if (type !== ModelType.IMAGE) return { seconds: requestedSeconds(params, type) };
  const { width, height } = sizeOf(params) ?? { width: 0, height: 0 };
  return { images: numberParam(params, "n", 1) * falMegapixels(width * height) };
}

/** The number of images that one of this many pixels is billed as. */
export function falMegapixels(pixels: number): number {
  return Math.max(1, Math.ceil(pixels / 1_000_000));
}
