/** What DashScope's tasks take: `input` and `parameters` of its pictures and films. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import {
  extraParam,
  fileParam,
  mapped,
  negativePromptParam,
  numberParam,
  ownParam,
  type Params,
  paramsObject,
  promptParam,
  seedParam,
  sizeParam,
  stringParam,
  wholeParam,
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
  n: wholeParam("How many pictures", { least: 1, most: 4, otherwise: 1 }),
  seed: seedParam,
  ...flags,
};

/** How long a film is where nobody says, or its model overlooks it, in seconds. */
export const secondsUsual = 5;

const video: Params = {
  prompt: promptParam(promptMax),
  negativePrompt: negativePromptParam(promptMax),
  imageUrl: fileParam("The first frame"),
  audioUrl: fileParam("The sound"),
  size: sizeParam,
  resolution: ownParam("How fine, such as 720P or 1080P", 16),
  duration: wholeParam("How long, in seconds", { least: 1, most: 60, otherwise: secondsUsual }),
  generateAudio: { type: "boolean", description: "Whether it has sound" },
  seed: seedParam,
  ...flags,
};

/** What is part of `input`; everything else is of `parameters`. */
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

/** See {@link VendorTasks.paramsSchema}. */
export function dashscopeSchema({ type }: ModelConfig): JsonObject {
  const isFilm = type === ModelType.VIDEO;
  return paramsObject(
    isFilm ? "videoParams" : "imageParams",
    { ...(isFilm ? video : image), extra },
    {
      required: ["prompt"],
      example: isFilm ? { prompt: "A lighthouse", duration: 5 } : { prompt: "A lighthouse" },
    },
  );
}

/** The body of a task. How many and how long is always said: it is what is held for. */
export function dashscopeBody(type: ModelType, model: string, params: JsonObject): JsonObject {
  const { extra: more, ...own } = params;
  const size = stringParam(params, "size")?.replace(/[x×]/, "*");
  const usual: JsonObject = type === ModelType.VIDEO ? { duration: secondsUsual } : { n: 1 };
  return {
    model,
    input: mapped(own, inputNames),
    parameters: {
      ...mapped({ ...usual, ...own, ...(more !== undefined && { extra: more }) }, parameterNames),
      ...(size !== undefined && size !== "auto" && { size }),
    },
  };
}

/** See {@link VendorTasks.units}. */
export function dashscopeUnits(params: JsonObject, { type }: ModelConfig): TaskUnits {
  return type === ModelType.VIDEO
    ? { seconds: numberParam(params, "duration", secondsUsual) }
    : { images: numberParam(params, "n", 1) };
}
