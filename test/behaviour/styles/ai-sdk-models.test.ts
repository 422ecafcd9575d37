/** The AI SDK calls models of every type, unmodified, against the vendor that is built in. */
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  cosineSimilarity,
  embedMany,
  generateSpeech,
  transcribe,
  generateImage,
  generateText,
  jsonSchema,
  Output,
  streamText,
} from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { always, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";

let gateway: Gateway;
let key: string;

beforeAll(async () => {
  const priced = always({ ...priceDefault, second: 1_000n, image: 1_000n });
  const model = (type: ModelType, name: string) => ({
    ...{ type, routes: [{ vendor: "demo", model: name }] },
    prices: type === ModelType.TEXT || type === ModelType.EMBEDDING ? always(priceDefault) : priced,
  });
  gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: {
      chat: model(ModelType.TEXT, "instant"),
      embedding: model(ModelType.EMBEDDING, "embedding"),
      audio: model(ModelType.AUDIO, "audio"),
      image: model(ModelType.IMAGE, "image"),
    },
  });
  ({ key } = await gateway.customer());
});
afterAll(() => gateway?.close());

const openai = () => createOpenAI({ apiKey: key, baseURL: `${gateway.url}/v1` });
const compatible = () =>
  createOpenAICompatible({
    ...{ name: "uas", apiKey: key, baseURL: `${gateway.url}/v1` },
    ...{ includeUsage: true, supportsStructuredOutputs: true },
  });

describe("text", () => {
  it("is generated and streamed alike, with its usage", async () => {
    const model = compatible().chatModel("chat");
    const whole = await generateText({ model, prompt: "Hello" });
    const streamed = streamText({ model, prompt: "Hello" });
    expect(await streamed.text).toBe(whole.text);
    expect((await streamed.usage).outputTokens).toBe(whole.usage.outputTokens);
  });

  it("has the form of a schema", async () => {
    const schema = jsonSchema<{ city: string }>({
      ...{ type: "object", properties: { city: { type: "string" } } },
      ...{ required: ["city"], additionalProperties: false },
    });
    const { output } = await generateText({
      ...{ model: openai().responses("chat"), prompt: "Paris", output: Output.object({ schema }) },
    });
    expect(output).toEqual({ city: "Paris" });
  });

  it("is continued by a completion model", async () => {
    const { text } = await generateText({
      ...{ model: openai().completion("chat"), prompt: "Once", maxOutputTokens: 4 },
    });
    expect(text).not.toBe("");
  });
});

it("the AI SDK embeds texts: those with the same words are nearest", async () => {
  for (const model of [openai().embedding("embedding"), compatible().embeddingModel("embedding")]) {
    const { embeddings, usage } = await embedMany({
      ...{ model, values: ["a red car", "the red car", "winter holidays"] },
    });
    const [first = [], second = [], third = []] = embeddings;
    expect(cosineSimilarity(first, second)).toBeGreaterThan(cosineSimilarity(first, third));
    expect(usage.tokens).toBeGreaterThan(0);
  }
});

it("the AI SDK generates images", async () => {
  const { images } = await generateImage({
    ...{ model: openai().image("image"), prompt: "A lighthouse", size: "256x256", n: 2 },
  });
  expect(images.map(({ mediaType }) => mediaType)).toEqual(["image/png", "image/png"]);
});

it("the AI SDK speaks, and transcribes what it spoke", async () => {
  const { audio } = await generateSpeech({
    ...{ model: openai().speech("audio"), text: "Good morning", outputFormat: "wav" },
  });
  expect(audio.mediaType).toBe("audio/wav");
  const { text } = await transcribe({
    ...{ model: openai().transcription("audio"), audio: audio.uint8Array },
  });
  expect(text).toContain(`${audio.uint8Array.length} bytes`);
});
