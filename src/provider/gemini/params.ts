/** Parameters of Gemini's images and videos. */
import type { JsonObject } from "@bufbuild/protobuf";
import {
  parseDataUrl,
  negativePromptParam,
  paramsObject,
  imageParam,
  promptParam,
  seedParam,
  stringParam,
  stringsParam,
  integerParam,
  enumParam,
} from "../task-params.ts";

const ratios = ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"];

/** The parameters of an image. */
export const imageSchema = paramsObject(
  "imageParams",
  {
    prompt: promptParam(32_000),
    imageUrls: {
      type: "array",
      description: "Images to start from",
      items: imageParam("One of them"),
      minItems: 1,
      maxItems: 14,
    },
    aspectRatio: enumParam("Width to height", ratios),
    resolution: enumParam("How fine, for models that have a choice", ["1k", "2k", "4k"]),
    seed: seedParam,
  },
  { required: ["prompt"] },
);

/** Default length of a video: the longest, which is also Veo's default. */
export const defaultVideoSeconds = 8;

/** The parameters of a video. */
export const videoSchema = paramsObject(
  "videoParams",
  {
    prompt: promptParam(8_000),
    negativePrompt: negativePromptParam(8_000),
    imageUrl: imageParam("The first frame"),
    duration: integerParam("Length in seconds", {
      least: 4,
      most: 8,
      otherwise: defaultVideoSeconds,
    }),
    aspectRatio: enumParam("Width to height", ["16:9", "9:16"]),
    resolution: enumParam("How fine", ["720p", "1080p", "4k"]),
    seed: seedParam,
  },
  { required: ["prompt"] },
);

/** The body of `generateContent` for one image. */
export function imageBody(params: JsonObject): JsonObject {
  const images = stringsParam(params, "imageUrls").map((url) => ({
    inlineData: { ...parseDataUrl(url) },
  }));
  const aspectRatio = stringParam(params, "aspectRatio");
  const imageSize = stringParam(params, "resolution")?.toUpperCase();
  const imageConfig = { ...(aspectRatio && { aspectRatio }), ...(imageSize && { imageSize }) };
  const { seed } = params;
  return {
    contents: [{ role: "user", parts: [{ text: stringParam(params, "prompt") ?? "" }, ...images] }],
    generationConfig: {
      responseModalities: ["TEXT", "IMAGE"],
      ...(Object.keys(imageConfig).length > 0 && { imageConfig }),
      ...(seed !== undefined && { seed }),
    },
  };
}

/** The body of `predictLongRunning` for one video. */
export function videoBody(params: JsonObject): JsonObject {
  const { duration = defaultVideoSeconds, aspectRatio, resolution, negativePrompt, seed } = params;
  const url = stringParam(params, "imageUrl");
  const source = url === undefined ? undefined : parseDataUrl(url);
  const image = source && { bytesBase64Encoded: source.data, mimeType: source.mimeType };
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
