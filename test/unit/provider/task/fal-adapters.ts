/** fal's adapters of tasks. */
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { Adapter } from "./adapter.ts";
import { falSays, falSecret, startFal } from "./fal-vendor.ts";

const fal = {
  closed: ["prompt", "seed", "num_images", "batch_size", "image_size", "duration", "fal_webhook"],
  kind: "fal",
  secret: falSecret,
  isSynchronous: false,
  basePath: "",
  start: startFal,
  says: {
    money: falSays(403, "User is locked. Reason: Exhausted balance."),
    invalid: falSays(422, "prompt: field required"),
    busy: { ...falSays(429, "Too many requests"), headers: { "retry-after": "7" } },
    full: falSays(503, "No runner is available"),
    broken: falSays(500, "Internal Server Error"),
  },
};

/** One for each type of task. */
export const falAdapters: readonly Adapter[] = [
  {
    ...fal,
    type: ModelType.IMAGE,
    model: "fal-ai/flux/dev",
    least: { prompt: "A lighthouse" },
    most: {
      prompt: "A lighthouse",
      negativePrompt: "people",
      imageUrls: ["https://example.com/a.png"],
      size: "1280×720",
      n: 3,
      steps: 28,
      guidanceScale: 3.5,
      outputFormat: "webp",
      seed: 4,
      extra: { acceleration: "regular" },
    },
    forbidden: { prompt: "something forbidden" },
  },
  {
    ...fal,
    type: ModelType.VIDEO,
    model: "fal-ai/kling-video/v2/master/text-to-video",
    least: { prompt: "Waves" },
    most: {
      prompt: "Waves",
      duration: 10,
      imageUrl: "data:image/png;base64,aGVsbG8=",
      aspectRatio: "16:9",
      seed: 4,
    },
    forbidden: { prompt: "something forbidden" },
  },
  {
    ...fal,
    closed: ["text", "prompt", "duration", "fal_webhook"],
    type: ModelType.AUDIO,
    model: "fal-ai/minimax/speech-02",
    least: { text: "Good morning." },
    most: { text: "Good morning.", voice: "calm" },
  },
];
