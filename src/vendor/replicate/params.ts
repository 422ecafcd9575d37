/** What predictions take. Each model of Replicate has an input of its own: these are the names that most have. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { refuseKept } from "../../dialect/guard.ts";
import { unescaped } from "../../dialect/json/escapes.ts";
import { isRecord } from "../../dialect/json/value.ts";
import {
  aspectRatioParam,
  extraParam,
  fileParam,
  mapped,
  negativePromptParam,
  numberParam,
  ownParam,
  paramsObject,
  promptParam,
  seedParam,
  stringParam,
  stringsParam,
  wholeParam,
  wordParam,
  type Params,
} from "../task-params.ts";
import type { TaskUnits } from "../task.ts";

const promptMax = 32_000;

/** What each type takes, and how it is called there. */
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
      description: "A picture to start from; more than one under the model's own name, in extra",
      items: fileParam("A picture"),
      minItems: 1,
      maxItems: 1,
    },
    maskUrl: fileParam("Which part of the picture to change"),
    strength: {
      type: "number",
      description: "How far to go from the picture",
      minimum: 0,
      maximum: 1,
    },
    aspectRatio: aspectRatioParam,
    n: wholeParam("How many pictures; the model's default is taken for 1", { least: 1, most: 4 }),
    steps: wholeParam("How many steps to take", { least: 1, most: 200 }),
    guidanceScale: {
      type: "number",
      description: "How closely to follow the prompt",
      minimum: 0,
      maximum: 50,
    },
    outputFormat: wordParam("The form of the file", ["png", "jpg", "jpeg", "webp"]),
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
    duration: wholeParam("How long, in seconds", { least: 1, most: 60 }),
    aspectRatio: aspectRatioParam,
    resolution: ownParam("How fine, such as 720p or 1080p", 16),
    fps: wholeParam("Pictures in a second", { least: 1, most: 120 }),
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
    voice: ownParam("Whose voice, in the model's words", 128),
    speed: { type: "number", description: "How fast; 1 is as usual", minimum: 0.25, maximum: 4 },
    duration: wholeParam("How long, in seconds", { least: 1, most: 600 }),
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

/** Names by which models make more than was asked for: what a task costs is computed from `n` and `duration`. */
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

/** Where a second has a price, one must say how many: models have defaults that are not known here. */
export function replicateSchema({ type, prices }: ModelConfig): JsonObject {
  const { title, members, names, required = [], oneOf = [] } = formOf(type);
  const isTimed =
    type !== ModelType.IMAGE && prices.some(({ price }) => price.second !== undefined);
  const closed = extraParam([...names.values(), ...multipliers]);
  const needed = isTimed ? [...required, "duration"] : required;
  return paramsObject(
    title,
    { ...members, extra: closed },
    { required: needed, oneOf, example: exampleOf(type, isTimed) },
  );
}

function exampleOf(type: ModelType, isTimed: boolean): JsonObject {
  const said = type === ModelType.AUDIO ? { text: "Good morning." } : { prompt: "A lighthouse" };
  return isTimed ? { ...said, duration: 5 } : said;
}

/** The `input` of a prediction. */
export function replicateInput(type: ModelType, params: JsonObject): JsonObject {
  const input = mapped(params, formOf(type).names);
  const [picture] = stringsParam(params, "imageUrls");
  return picture === undefined ? input : { ...input, image: picture };
}

/** See {@link VendorTasks.secondsUsual}. */
export const secondsUsual = 10;

/** See {@link VendorTasks.units}. */
export function replicateUnits(params: JsonObject, { type }: ModelConfig): TaskUnits {
  if (type === ModelType.IMAGE) return { images: numberParam(params, "n", 1) };
  const said = stringParam(params, "text") ?? stringParam(params, "prompt") ?? "";
  return { seconds: numberParam(params, "duration", 0), inputTokens: Buffer.byteLength(said) };
}

/* Files that Replicate keeps for its account, as requests name them. */

/** The file that an address names, and where; `undefined`: it names none. */
export function fileIn(text: string): { readonly id: string; readonly host: string } | undefined {
  // As the URL standard reads it, which overlooks control characters: no spelling of an address is overlooked.
  const url = /^[\0- ]*h/i.test(text) ? URL.parse(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  const [, id] = /\/v1\/+files\/+([^/]+)/i.exec(unescaped(url.pathname)) ?? [];
  return id === undefined ? undefined : { id, host: url.hostname };
}

/**
 * Refuses the files of Replicate's account anywhere in the parameters of a task.
 *
 * @param apiHost the host that is asked, beside Replicate's own
 * @throws GatewayError INVALID_REQUEST
 */
export function refuseFiles(value: JsonValue, path: string, apiHost: string): void {
  if (typeof value === "string") {
    const host = fileIn(value)?.host.replace(/\.$/, "");
    if (host !== apiHost && !/(?:^|\.)replicate\.com$/.test(host ?? "")) return;
    throw refuseKept(path, "send the file itself, or a public address");
  }
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) refuseFiles(each, `${path}[${at}]`, apiHost);
  } else if (isRecord(value)) {
    for (const [name, each] of Object.entries(value)) {
      refuseFiles(each, `${path}.${name}`, apiHost);
    }
  }
}
