/** Parameters of images and speech in OpenAI's style. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { AudioFormat } from "../media/length.ts";
import {
  stringParam,
  extraParam,
  type Mapping,
  mapParams,
  vendorTextParam,
  paramsObject,
  promptParam,
  sizeParam,
  integerParam,
  enumParam,
} from "../task-params.ts";

const imageNames: Mapping = new Map([
  ["prompt", "prompt"],
  ["n", "n"],
  ["size", "size"],
  ["quality", "quality"],
  ["outputFormat", "output_format"],
]);

const speechNames: Mapping = new Map([
  ["voice", "voice"],
  ["format", "response_format"],
  ["speed", "speed"],
]);

/** Members that the adapter itself sets: delivery and format of the result. */
const own = [
  "model",
  "stream",
  "stream_format",
  "response_format",
  "partial_images",
  "input",
  "user",
];

/**
 * Further parameters of OpenAI itself. A closed list, since some others change the price of an
 * image.
 */
function openaiExtra(members: Readonly<Record<string, JsonObject>>): JsonObject {
  return {
    type: "object",
    description: "Further parameters of OpenAI, passed on as they are",
    properties: members,
    additionalProperties: false,
  };
}

/** @param isOpenai see {@link createOpenaiTasks} */
export function imageSchema(isOpenai: boolean): JsonObject {
  const quality = "Quality; finer images take longer";
  return paramsObject(
    "imageParams",
    {
      prompt: promptParam(32_000),
      size: sizeParam,
      n: integerParam("Number of images", { least: 1, most: 10, otherwise: 1 }),
      quality: isOpenai
        ? enumParam(quality, ["low", "medium", "high", "xhigh", "max", "auto"])
        : vendorTextParam(quality, 32),
      outputFormat: enumParam("File format", ["png", "jpeg", "webp"]),
      extra: isOpenai
        ? openaiExtra({
            background: enumParam("What is behind", ["transparent", "opaque", "auto"]),
            moderation: enumParam("How strictly content is filtered", ["low", "auto"]),
            output_compression: integerParam("How much of the quality is kept, in percent", {
              least: 0,
              most: 100,
            }),
          })
        : extraParam([...own, ...imageNames.values(), ...multipliers]),
    },
    { required: ["prompt"] },
  );
}

/** Names for the number of images on other servers of this style. */
const multipliers = ["batch_size", "num_images", "num_outputs", "number_of_images", "samples"];

/** @param isOpenai see {@link createOpenaiTasks} */
export function speechSchema(isOpenai: boolean): JsonObject {
  return paramsObject(
    "audioParams",
    {
      text: { ...promptParam(4_096), description: "What to say" },
      prompt: { ...promptParam(4_096), description: "The same as text" },
      voice: { ...vendorTextParam("Voice, by the vendor's name for it", 128), default: "alloy" },
      format: enumParam("File format", [...audioFormats], "mp3"),
      speed: {
        type: "number",
        description: "Speed; 1 is normal",
        minimum: 0.25,
        maximum: 4,
        default: 1,
      },
      extra: isOpenai
        ? openaiExtra({ instructions: vendorTextParam("How to say it", 4_096) })
        : extraParam([...own, ...speechNames.values()]),
    },
    { oneOf: ["text", "prompt"] },
  );
}

const audioFormats = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const satisfies AudioFormat[];

/** The requested file format. */
export function speechFormat(params: JsonObject): AudioFormat {
  const named = stringParam(params, "format");
  return audioFormats.find((format) => format === named) ?? "mp3";
}

/** The body of an image request, without the model. */
export function imageBody(params: JsonObject): JsonObject {
  const sent = mapParams(params, imageNames);
  const size = stringParam(params, "size");
  return size === undefined ? sent : { ...sent, size: size.replace(/[*×]/, "x") };
}

/** The body of a speech request, without the model. */
export function speechBody(params: JsonObject): JsonObject {
  const input = stringParam(params, "text") ?? stringParam(params, "prompt") ?? "";
  return {
    voice: "alloy",
    ...mapParams(params, speechNames),
    response_format: speechFormat(params),
    input,
  };
}
