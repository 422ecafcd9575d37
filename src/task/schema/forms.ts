/** The canonical parameters of each task type, independent of the vendor. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { boundOf, requestSize, scanSize, mediaTokens } from "../../tokens/request-tokens.ts";
import type { TaskUnits, UnitModel } from "../../provider/task.ts";
import {
  common,
  file,
  files,
  flag,
  formed,
  number,
  paramsSchema,
  shape,
  text,
  whole,
  word,
  type ParamsForm,
} from "./members.ts";

/** The longest prompt of an image, video or audio task, in characters. */
const promptCharsMax = 32_000;

/** The longest prompt of a text, in characters: beyond any model's context. */
const textCharsMax = 4_000_000;

const prompts = {
  prompt: text("What to generate, in words", promptCharsMax),
  negativePrompt: text("What not to generate", promptCharsMax),
};

const image: ParamsForm = {
  title: "imageParams",
  needs: [["prompt"]],
  members: {
    ...prompts,
    imageUrls: files("Images to start from", 16),
    maskUrl: file("Mask: the part of the first image to change"),
    strength: number("How strongly to change the image", 0, 1),
    ...shape,
    resolution: formed("Resolution, such as 1k, 2k, 4k", "^(?:\\d+(?:\\.\\d+)?[kK]|\\d{3,4}p)$"),
    n: whole("Number of images; default 1", 1, 10),
    quality: text("Quality, in the vendor's words", 32),
    style: text("Style, in the vendor's words", 64),
    steps: whole("Number of inference steps", 1, 200),
    guidanceScale: number("Guidance scale: how closely to follow the prompt", 0, 50),
    outputFormat: word("The format of the file", ["png", "jpeg", "webp"]),
    ...common,
  },
};

const video: ParamsForm = {
  title: "videoParams",
  needs: [["prompt", "imageUrl"]],
  members: {
    ...prompts,
    imageUrl: file("The first frame"),
    lastFrameUrl: file("The last frame"),
    referenceImageUrls: files("Images of the subjects", 16),
    videoUrl: file("A video to start from"),
    audioUrl: file("The audio track"),
    duration: whole("Length in seconds", 1, 60),
    ...shape,
    resolution: formed("Resolution, such as 720p, 1080p, 4k", "^(?:\\d{3,4}[pP]|\\d[kK])$"),
    fps: whole("Frames per second", 1, 120),
    n: whole("Number of videos; default 1", 1, 4),
    generateAudio: flag("Whether to generate audio as well"),
    cameraMotion: text("Camera movement, in the vendor's words", 256),
    ...common,
  },
};

const audio: ParamsForm = {
  title: "audioParams",
  needs: [["text", "prompt"]],
  members: {
    text: text("What to say", promptCharsMax),
    prompt: text("What to generate, or how to speak the text, in words", promptCharsMax),
    lyrics: text("What to sing", promptCharsMax),
    audioUrl: file("A recording to start from"),
    language: formed("The language, such as en or pt-BR", "^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$"),
    voice: text("Voice, by the vendor's name for it", 128),
    format: formed("The format of the file, such as mp3 or wav", "^[a-z0-9_]{2,16}$"),
    sampleRate: whole("Samples per second", 8_000, 192_000),
    speed: number("Speed; 1 is normal", 0.25, 4),
    volume: number("Volume, in the vendor's unit", 0, 100),
    pitch: number("Pitch, in the vendor's unit", -100, 100),
    duration: number("Length in seconds", 0.5, 600),
    seed: common["seed"] ?? {},
  },
};

function textForm(maxOutputTokens: number): ParamsForm {
  return {
    title: "textParams",
    needs: [["prompt", "messages"]],
    // Its vendors have different styles: no further parameter is common to all of them.
    hasNoExtra: true,
    members: {
      prompt: text("What to answer", textCharsMax),
      messages: {
        type: "array",
        description: "A conversation, in the style of chat completions",
        minItems: 1,
        maxItems: 10_000,
        items: {
          type: "object",
          required: ["role", "content"],
          properties: {
            role: word("Whose words", ["system", "developer", "user", "assistant"]),
            content: {
              description: "A text, or a list of parts as in chat completions",
              anyOf: [
                { type: "string", maxLength: textCharsMax },
                { type: "array", minItems: 1, maxItems: 1_000, items: { type: "object" } },
              ],
            },
          },
        },
      },
      systemPrompt: text("How to answer", textCharsMax),
      imageUrls: files("Images that the prompt refers to", 16),
      maxTokens: whole("Maximum output tokens", 1, Math.max(1, maxOutputTokens)),
      temperature: number("Sampling temperature: higher values give more varied replies", 0, 2),
      topP: number("Nucleus sampling: the share of likely tokens to choose from", 0, 1),
      stop: {
        description: "Where to stop",
        anyOf: [
          { type: "string", minLength: 1, maxLength: 256 },
          {
            type: "array",
            minItems: 1,
            maxItems: 4,
            items: { type: "string", minLength: 1, maxLength: 256 },
          },
        ],
      },
      responseFormat: {
        type: "object",
        description: "The format of the reply, as `response_format` of chat completions",
        required: ["type"],
        properties: { type: word("Which form", ["text", "json_object", "json_schema"]) },
      },
      seed: common["seed"] ?? {},
    },
  };
}

/**
 * The schema of a model's parameters, if its vendor has none; undefined if there is no such type.
 */
export function baseSchema({ type, maxOutputTokens }: ModelConfig): JsonObject | undefined {
  if (type === ModelType.IMAGE) return paramsSchema(image);
  if (type === ModelType.VIDEO) return paramsSchema(video);
  if (type === ModelType.AUDIO) return paramsSchema(audio);
  return type === ModelType.TEXT ? paramsSchema(textForm(maxOutputTokens)) : undefined;
}

/** The member of a submit that contains the parameters of each type. */
export const paramsFields = {
  [ModelType.TEXT]: "textParams",
  [ModelType.IMAGE]: "imageParams",
  [ModelType.VIDEO]: "videoParams",
  [ModelType.AUDIO]: "audioParams",
} as const;

/** Example parameters: the fewest that every model of the type accepts. */
export const examples: Readonly<Record<keyof typeof paramsFields, JsonObject>> = {
  [ModelType.TEXT]: { prompt: "Write a haiku about the sea." },
  [ModelType.IMAGE]: { prompt: "A lighthouse at dawn, watercolour" },
  [ModelType.VIDEO]: { prompt: "Waves roll onto a beach at sunset" },
  [ModelType.AUDIO]: { text: "Good morning, and welcome aboard." },
};

/**
 * The most that a TEXT task can be charged for: the bound of its input tokens, and its max output
 * tokens.
 */
export function textUnits(
  params: JsonObject,
  { maxOutputTokens }: UnitModel,
): TaskUnits & { readonly hasAudioInput: boolean } {
  const { imageUrls, maxTokens, ...rest } = params;
  const named = Array.isArray(imageUrls) ? imageUrls.length : 0;
  const perImage = mediaTokens({ kind: "image", bytes: undefined }).bound;
  const size = scanSize(Buffer.from(JSON.stringify(rest)));
  return {
    inputTokens: boundOf(requestSize(size)) + named * perImage,
    // A video has an audio track.
    hasAudioInput: size.media.some(({ kind }) => kind === "audio" || kind === "video"),
    outputTokens: typeof maxTokens === "number" ? maxTokens : maxOutputTokens,
  };
}
