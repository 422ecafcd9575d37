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
import type { TaskUnits } from "../task.ts";

const promptMax = 5_000;

const flags: Params = {
  watermark: { type: "boolean", description: "Whether it says that a model made it" },
  promptExtend: { type: "boolean", description: "Whether the prompt is made more of first" },
};

const image: Params = {
  prompt: promptParam(promptMax),
  negativePrompt: negativePromptParam(promptMax),
  size: sizeParam,
  n: integerParam("How many pictures", { least: 1, most: 4, otherwise: 1 }),
  seed: seedParam,
  ...flags,
};

/** Assumed length of a video, in seconds, where none is requested or its model ignores the request. */
export const assumedSeconds = 5;

const video: Params = {
  prompt: promptParam(promptMax),
  negativePrompt: negativePromptParam(promptMax),
  imageUrl: fileParam("The first frame"),
  audioUrl: fileParam("The sound"),
  size: sizeParam,
  resolution: vendorTextParam("How fine, such as 720P or 1080P", 16),
  duration: integerParam("How long, in seconds", { least: 1, most: 60, otherwise: assumedSeconds }),
  generateAudio: { type: "boolean", description: "Whether it has sound" },
  seed: seedParam,
  ...flags,
};

/** Parameters that belong to `input`; all others belong to `parameters`. */
const inputNames: ReadonlyMap<string, string> = new Map([
  ["prompt", "prompt"],
  ["negativePrompt", "negative_prompt"],
  ["imageUrl", "img_url"],
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
export function dashscopeSchema({ type }: ModelConfig): JsonObject {
  const isVideo = type === ModelType.VIDEO;
  return paramsObject(
    isVideo ? "videoParams" : "imageParams",
    { ...(isVideo ? video : image), extra },
    {
      required: ["prompt"],
      example: isVideo ? { prompt: "A lighthouse", duration: 5 } : { prompt: "A lighthouse" },
    },
  );
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
export function dashscopeUnits(params: JsonObject, { type }: ModelConfig): TaskUnits {
  return type === ModelType.VIDEO
    ? { seconds: numberParam(params, "duration", assumedSeconds) }
    : { images: numberParam(params, "n", 1) };
}
