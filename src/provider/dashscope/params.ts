/** Parameters of DashScope's image and video tasks: `input` and `parameters`. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import {
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
  integerParam,
} from "../task-params.ts";
import type { TaskUnits, UnitModel } from "../task.ts";

const promptMax = 5_000;

const flags: Params = {
  watermark: { type: "boolean", description: "Whether it says that a model made it" },
  promptExtend: { type: "boolean", description: "Whether the prompt is made more of first" },
};

const image: Params = {
  prompt: promptParam(promptMax),
  negativePrompt: negativePromptParam(promptMax),
  size: sizeParam,
  n: integerParam("Number of images", { least: 1, most: 4, otherwise: 1 }),
  seed: seedParam,
  ...flags,
};

/** Of models that edit images; their count defaults to 4 at DashScope, and is always sent. */
const edit: Params = {
  ...image,
  imageUrls: {
    type: "array",
    description: "Images to start from",
    items: fileParam("One of them"),
    minItems: 1,
    maxItems: 3,
  },
};

/**
 * Whether a model edits images (`wan2.5-i2i-preview`): it has a separate address, and needs an
 * image.
 */
export function isImageEditor(model: string): boolean {
  return /-i2i(?:-|$)/.test(model);
}

/** Assumed length of a video, if none is requested or its model ignores the request. */
export const assumedSeconds = 5;

const video: Params = {
  prompt: promptParam(promptMax),
  negativePrompt: negativePromptParam(promptMax),
  imageUrl: fileParam("The first frame"),
  audioUrl: fileParam("The audio"),
  size: sizeParam,
  resolution: vendorTextParam("Resolution, such as 720P or 1080P", 16),
  duration: integerParam("Length in seconds", { least: 1, most: 60, otherwise: assumedSeconds }),
  generateAudio: { type: "boolean", description: "Whether it has audio" },
  seed: seedParam,
  ...flags,
};

/** Parameters that belong to `input`; all others belong to `parameters`. */
const inputNames: ReadonlyMap<string, string> = new Map([
  ["prompt", "prompt"],
  ["negativePrompt", "negative_prompt"],
  ["imageUrl", "img_url"],
  ["imageUrls", "images"],
  ["audioUrl", "audio_url"],
]);

const parameterNames: ReadonlyMap<string, string> = new Map([
  ["n", "n"],
  ["resolution", "resolution"],
  ["duration", "duration"],
  ["generateAudio", "audio"],
  ["seed", "seed"],
  ["watermark", "watermark"],
  ["promptExtend", "prompt_extend"],
]);

const extra = extraParam([...parameterNames.values(), "size", "incremental_output"]);

/** Implements {@link VendorTasks.paramsSchema}. */
export function dashscopeSchema({ type, routes }: ModelConfig): JsonObject {
  if (type === ModelType.VIDEO) {
    const example = { prompt: "A lighthouse", duration: 5 };
    return paramsObject("videoParams", { ...video, extra }, { required: ["prompt"], example });
  }
  const isEditor = routes.every(({ model }) => isImageEditor(model));
  const example = { prompt: "A lighthouse" };
  return isEditor
    ? paramsObject(
        "imageParams",
        { ...edit, extra },
        {
          required: ["prompt", "imageUrls"],
          example: { prompt: "Add a boat", imageUrls: ["https://example.com/sea.png"] },
        },
      )
    : paramsObject("imageParams", { ...image, extra }, { required: ["prompt"], example });
}

/** The body of a task. Count and length are always sent, since the hold is computed from them. */
export function dashscopeBody(type: ModelType, model: string, params: JsonObject): JsonObject {
  const { extra: more, ...own } = params;
  const size = stringParam(params, "size")?.replace(/[x×]/, "*");
  const defaults: JsonObject = type === ModelType.VIDEO ? { duration: assumedSeconds } : { n: 1 };
  return {
    model,
    input: mapParams(own, inputNames),
    parameters: {
      ...mapParams(
        { ...defaults, ...own, ...(more !== undefined && { extra: more }) },
        parameterNames,
      ),
      ...(size !== undefined && size !== "auto" && { size }),
    },
  };
}

/** Implements {@link VendorTasks.units}. */
export function dashscopeUnits(params: JsonObject, { type }: UnitModel): TaskUnits {
  return type === ModelType.VIDEO
    ? { seconds: numberParam(params, "duration", assumedSeconds) }
    : { images: numberParam(params, "n", 1) };
}
