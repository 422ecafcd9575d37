/** R-TSK-2, R-MDL-1: what is served as a model's schema is what submits are checked with. */
import type { JsonObject } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../../../src/config/config.ts";
import { GatewayError } from "../../../../src/core/errors.ts";
import { snakeCase } from "../../../../src/task/schema/members.ts";
import { createTaskSchemas, type TaskModel } from "../../../../src/task/schema/schemas.ts";
import type { VendorTasks } from "../../../../src/provider/task.ts";

const types = [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO] as const;

const tasks: VendorTasks = {
  resubmit: "blind",
  types: new Set(types),
  canCancel: false,
  submit: () => Promise.reject(new Error("not asked")),
  units: () => ({ images: 1 }),
};

function modelOf(type: ModelType): ModelConfig {
  const routes = [{ vendor: "v", model: "m" }];
  return {
    key: "m",
    name: "m",
    type,
    routes,
    maxOutputTokens: 4_096,
    holdOutputTokens: 2_048,
    prices: [],
  };
}

function taskModel(type: ModelType, own: Partial<VendorTasks> = {}): TaskModel {
  return createTaskSchemas({ tasksOf: () => ({ ...tasks, ...own }) }).of(modelOf(type));
}

/** Why parameters are refused. */
function refusal(type: ModelType, params: JsonObject): GatewayError {
  try {
    taskModel(type).read(params);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("accepted");
}

const image = ModelType.IMAGE;

describe("parameters", () => {
  it.each(types)("the example of the parameters of type %i is accepted as it is", (type) => {
    const { example, read } = taskModel(type);
    expect(read(example)).toEqual(example);
  });

  it.each(types)(
    "every parameter of type %i has a description, and snake_case stands for it",
    (type) => {
      const { schema, read, example } = taskModel(type);
      const properties = schema["properties"] as Record<string, JsonObject>;
      for (const [name, property] of Object.entries(properties)) {
        expect(property["description"], name).toEqual(expect.any(String));
        if (snakeCase(name) === name) continue;
        const both = { ...example, [name]: {}, [snakeCase(name)]: {} };
        expect(() => read(both), name).toThrow(/occurs twice/);
      }
    },
  );

  it("gives snake_case its canonical name, and leaves out nulls", () => {
    const read = taskModel(image).read({ prompt: "p", negative_prompt: "n", seed: null });
    expect(read).toEqual({ prompt: "p", negativePrompt: "n" });
  });

  it.each<[string, ModelType, JsonObject, string]>([
    ["an unknown one", image, { prompt: "p", width: 3 }, "imageParams.width"],
    ["the wrong case", image, { Prompt: "p" }, "imageParams.Prompt"],
    ["a missing prompt", image, {}, "imageParams.prompt"],
    ["an empty prompt", image, { prompt: "" }, "imageParams.prompt"],
    ["an oversize prompt", image, { prompt: "p".repeat(32_001) }, "imageParams.prompt"],
    ["a number as prompt", image, { prompt: 7 }, "imageParams.prompt"],
    ["too many pictures", image, { prompt: "p", n: 11 }, "imageParams.n"],
    ["half a picture", image, { prompt: "p", n: 1.5 }, "imageParams.n"],
    ["a number as text", image, { prompt: "p", n: "2" }, "imageParams.n"],
    ["a size that is none", image, { prompt: "p", size: "big" }, "imageParams.size"],
    [
      "a word that is none",
      image,
      { prompt: "p", outputFormat: "gif" },
      "imageParams.outputFormat",
    ],
    ["http", image, { prompt: "p", imageUrls: ["http://a.example/x"] }, "imageParams.imageUrls[0]"],
    ["loopback", image, { prompt: "p", maskUrl: "https://127.0.0.1/x" }, "imageParams.maskUrl"],
    [
      "metadata",
      image,
      { prompt: "p", maskUrl: "https://169.254.169.254/" },
      "imageParams.maskUrl",
    ],
    ["data: that is none", image, { prompt: "p", maskUrl: "data:x" }, "imageParams.maskUrl"],
    [
      "extra with a place",
      image,
      { prompt: "p", extra: { negative_prompt: "x" } },
      "imageParams.extra",
    ],
    ["a film of nothing", ModelType.VIDEO, { duration: 3 }, "videoParams"],
    ["a long film", ModelType.VIDEO, { prompt: "p", duration: 61 }, "videoParams.duration"],
    ["sound of nothing", ModelType.AUDIO, { voice: "v" }, "audioParams"],
    ["too many tokens", ModelType.TEXT, { prompt: "p", maxTokens: 4_097 }, "textParams.maxTokens"],
    [
      "an odd role",
      ModelType.TEXT,
      { messages: [{ role: "x", content: "c" }] },
      "textParams.messages[0].role",
    ],
    [
      "no content",
      ModelType.TEXT,
      { messages: [{ role: "user" }] },
      "textParams.messages[0].content",
    ],
  ])("refuses %s, and names it", (_name, type, params, param) => {
    const { message, param: named } = refusal(type, params);
    expect(message).toContain(param);
    expect(named?.startsWith(param)).toBe(true);
  });

  it("parameters are refused with the names of all unknown ones", () => {
    expect(refusal(image, { prompt: "p", a: 1, b: 2 }).message).toMatch(
      /imageParams\.a, imageParams\.b: /,
    );
  });

  it("accepts files by public https addresses and as data", () => {
    const imageUrls = ["https://a.example/x.png?y=1#z", "data:image/png;base64,AAAA"];
    expect(taskModel(image).read({ prompt: "p", imageUrls })).toEqual({ prompt: "p", imageUrls });
  });

  it("passes on what stands in extra, at most 64 members", () => {
    const extra = { loraScale: 0.5, nested: { deep: [1] } };
    expect(taskModel(image).read({ prompt: "p", extra })).toEqual({ prompt: "p", extra });
  });

  it("accepts or refuses any object with a 400, and never changes what it was given", () => {
    const model = taskModel(image);
    const anyParams = fc.dictionary(
      fc.constantFrom("prompt", "n", "size", "image_urls", "extra", "__proto__", "toString", "x"),
      fc.jsonValue({ maxDepth: 2 }),
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(anyParams, (params) => {
        const before = structuredClone(params);
        try {
          model.read(params as JsonObject);
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
          expect((error as GatewayError).status).toBe(400);
        }
        expect(params).toEqual(before);
      }),
      { numRuns: 200 },
    );
  });
});

describe("a vendor's own schema", () => {
  const own: JsonObject = {
    type: "object",
    properties: { prompt: { type: "string", description: "p" } },
    required: ["prompt"],
    additionalProperties: false,
    examples: [{ prompt: "mine" }],
  };

  it("a vendor's own schema is what is served and checked with, with its example", () => {
    const { schema, example, read } = taskModel(image, { paramsSchema: () => own });
    expect({ schema, example }).toEqual({ schema: own, example: { prompt: "mine" } });
    expect(() => read({ prompt: "p", n: 1 })).toThrow(/imageParams\.n: not known/);
  });

  it("a vendor's own schema is needed: a model whose vendors run no such tasks is a 400", () => {
    const schemas = createTaskSchemas({ tasksOf: () => undefined });
    expect(() => schemas.of(modelOf(image))).toThrow(/does not run tasks/);
  });
});

it("R-TSK-6: a TEXT task holds for its parameters and all it may answer", () => {
  const { units } = taskModel(ModelType.TEXT);
  const { inputTokens = 0, outputTokens } = units({ prompt: "x".repeat(4_000) });
  expect(inputTokens).toBeGreaterThanOrEqual(1_000);
  expect(outputTokens).toBe(4_096);
  const less = units({ prompt: "x", maxTokens: 7, imageUrls: ["https://a.example/x"] });
  expect(less.outputTokens).toBe(7);
  expect(less.inputTokens).toBeGreaterThanOrEqual(5_000);
  expect(less.hasAudioInput).toBe(false);
  const audio = { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } };
  const heard = units({ messages: [{ role: "user", content: [audio] }] });
  expect(heard.hasAudioInput).toBe(true);
});
