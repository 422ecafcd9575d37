/** What pictures and films of Gemini take. */
import type { JsonObject } from "@bufbuild/protobuf";
import {
  dataOf,
  negativePromptParam,
  paramsObject,
  pictureParam,
  promptParam,
  seedParam,
  stringParam,
  stringsParam,
  wholeParam,
  wordParam,
} from "../task-params.ts";

const ratios = ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"];

/** The parameters of a picture. */
export const imageSchema = paramsObject(
  "imageParams",
  {
    prompt: promptParam(32_000),
    imageUrls: {
      type: "array",
      description: "Pictures to start from",
      items: pictureParam("One of them"),
      minItems: 1,
      maxItems: 14,
    },
    aspectRatio: wordParam("Width to height", ratios),
    resolution: wordParam("How fine, for models that have a choice", ["1k", "2k", "4k"]),
    seed: seedParam,
  },
  { required: ["prompt"] },
);

/** How long a film is where nobody says, in seconds: the longest, which is Veo's own default. */
export const filmSeconds = 8;

/** The parameters of a film. */
export const videoSchema = paramsObject(
  "videoParams",
  {
    prompt: promptParam(8_000),
    negativePrompt: negativePromptParam(8_000),
    imageUrl: pictureParam("The first frame"),
    duration: wholeParam("How long, in seconds", { least: 4, most: 8, otherwise: filmSeconds }),
    aspectRatio: wordParam("Width to height", ["16:9", "9:16"]),
    resolution: wordParam("How fine", ["720p", "1080p", "4k"]),
    seed: seedParam,
  },
  { required: ["prompt"] },
);

/** The body of `generateContent` for one picture. */
export function imageBody(params: JsonObject): JsonObject {
  const pictures = stringsParam(params, "imageUrls").map((url) => ({
    inlineData: { ...dataOf(url) },
  }));
  const aspectRatio = stringParam(params, "aspectRatio");
  const imageSize = stringParam(params, "resolution")?.toUpperCase();
  const imageConfig = { ...(aspectRatio && { aspectRatio }), ...(imageSize && { imageSize }) };
  const { seed } = params;
  return {
    contents: [
      { role: "user", parts: [{ text: stringParam(params, "prompt") ?? "" }, ...pictures] },
    ],
    generationConfig: {
      responseModalities: ["TEXT", "IMAGE"],
      ...(Object.keys(imageConfig).length > 0 && { imageConfig }),
      ...(seed !== undefined && { seed }),
    },
  };
}

/** The body of `predictLongRunning` for one film. */
export function videoBody(params: JsonObject): JsonObject {
  const { duration = filmSeconds, aspectRatio, resolution, negativePrompt, seed } = params;
  const url = stringParam(params, "imageUrl");
  const picture = url === undefined ? undefined : dataOf(url);
  const image = picture && { bytesBase64Encoded: picture.data, mimeType: picture.mimeType };
  return {
    instances: [{ prompt: stringParam(params, "prompt") ?? "", ...(image && { image }) }],
    parameters: {
      durationSeconds: duration,
      ...(aspectRatio !== undefined && { aspectRatio }),
      ...(resolution !== undefined && { resolution }),
      ...(negativePrompt !== undefined && { negativePrompt }),
      ...(seed !== undefined && { seed }),
    },
  };
}
