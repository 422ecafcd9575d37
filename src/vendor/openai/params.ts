/** What pictures and speech of OpenAI's style take, and how they are called there. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { SoundFormat } from "../media-length.ts";
import {
  extraParam,
  type Mapping,
  mapped,
  ownParam,
  paramsObject,
  promptParam,
  sizeParam,
  stringParam,
  wholeParam,
  wordParam,
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

/** What the adapter itself decides: where the result comes, and how. */
const own = [
  "model",
  "stream",
  "stream_format",
  "response_format",
  "partial_images",
  "input",
  "user",
];

/** Further parameters of OpenAI itself: closed, for some others change what a picture costs. */
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
  const quality = "How good; finer pictures take longer";
  return paramsObject(
    "imageParams",
    {
      prompt: promptParam(32_000),
      size: sizeParam,
      n: wholeParam("How many pictures", { least: 1, most: 10, otherwise: 1 }),
      quality: isOpenai
        ? wordParam(quality, ["low", "medium", "high", "xhigh", "max", "auto"])
        : ownParam(quality, 32),
      outputFormat: wordParam("The form of the file", ["png", "jpeg", "webp"]),
      extra: isOpenai
        ? openaiExtra({
            background: wordParam("What is behind", ["transparent", "opaque", "auto"]),
            moderation: wordParam("How strictly content is filtered", ["low", "auto"]),
            output_compression: wholeParam("How much of the quality is kept, in percent", {
              least: 0,
              most: 100,
            }),
          })
        : extraParam([...own, ...imageNames.values(), ...multipliers]),
    },
    { required: ["prompt"] },
  );
}

/** What other servers of this style call the number of pictures. */
const multipliers = ["batch_size", "num_images", "num_outputs", "number_of_images", "samples"];

/** @param isOpenai see {@link createOpenaiTasks} */
export function speechSchema(isOpenai: boolean): JsonObject {
  return paramsObject(
    "audioParams",
    {
      text: { ...promptParam(4_096), description: "What to say" },
      prompt: { ...promptParam(4_096), description: "The same as text" },
      voice: { ...ownParam("Whose voice, in the vendor's words", 128), default: "alloy" },
      format: wordParam("The form of the file", [...soundFormats], "mp3"),
      speed: {
        type: "number",
        description: "How fast; 1 is as usual",
        minimum: 0.25,
        maximum: 4,
        default: 1,
      },
      extra: isOpenai
        ? openaiExtra({ instructions: ownParam("How to say it", 4_096) })
        : extraParam([...own, ...speechNames.values()]),
    },
    { oneOf: ["text", "prompt"] },
  );
}

const soundFormats = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const satisfies SoundFormat[];

/** The form of the file that was asked for. */
export function speechFormat(params: JsonObject): SoundFormat {
  const named = stringParam(params, "format");
  return soundFormats.find((format) => format === named) ?? "mp3";
}

/** The body of a request for pictures, but for the model. */
export function mappedImage(params: JsonObject): JsonObject {
  const sent = mapped(params, imageNames);
  const size = stringParam(params, "size");
  return size === undefined ? sent : { ...sent, size: size.replace(/[*×]/, "x") };
}

/** The body of a request for speech, but for the model. */
export function mappedSpeech(params: JsonObject): JsonObject {
  const input = stringParam(params, "text") ?? stringParam(params, "prompt") ?? "";
  return {
    voice: "alloy",
    ...mapped(params, speechNames),
    response_format: speechFormat(params),
    input,
  };
}
