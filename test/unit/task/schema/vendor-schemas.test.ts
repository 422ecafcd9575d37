/**
 * R-MDL-1: the schema of a model works with common tools. Every kind of vendor, every type of
 * model: it compiles under ajv's strict mode as draft 2020-12, with all strict rules, and its
 * example is valid.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, describe, expect, it } from "vitest";
import { ModelType, ModelTypeSchema } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, VendorConfig } from "../../../../src/config/config.ts";
import { createTaskSchemas } from "../../../../src/task/schema/schemas.ts";
import { vendorKinds } from "../../../../src/provider/index.ts";

const config: VendorConfig = {
  name: "v",
  kind: "",
  baseUrl: "http://127.0.0.1:9/v1",
  apiKey: "secret",
  dialects: undefined,
  timeouts: { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000 },
  maxInFlight: undefined,
  pollsPerSecond: undefined,
  onDisconnect: "abort",
  nativePrefix: undefined,
  runBaseUrl: undefined,
};

const vendors = Object.entries(vendorKinds).map(([kind, vendorKind]) => ({
  kind,
  modelTypes: vendorKind.modelTypes,
  vendor: vendorKind.create({ ...config, kind }),
}));
afterAll(() => Promise.all(vendors.map(({ vendor }) => vendor.close())));

/** The types of models that tasks run. */
const taskTypes = new Set<ModelType>([
  ModelType.TEXT,
  ModelType.IMAGE,
  ModelType.VIDEO,
  ModelType.AUDIO,
]);

const all = vendors.flatMap(({ kind, modelTypes, vendor }) =>
  modelTypes
    .filter((type) => taskTypes.has(type))
    .map((type) => ({ kind, type, word: ModelTypeSchema.value[type]?.localName, vendor })),
);

/** A third-party tool: of `uri` it knows only what 2020-12 states. */
function compile(schema: JsonObject) {
  const ajv = new Ajv2020({ strict: true, allErrors: true });
  ajv.addFormat("uri", (text) => URL.canParse(text));
  return ajv.compile(schema);
}

function modelOf(type: ModelType): ModelConfig {
  return {
    key: "m",
    name: "m",
    type,
    routes: [{ vendor: "v", model: "owner/name" }],
    maxOutputTokens: 4_096,
    holdOutputTokens: 2_048,
    prices: [],
  };
}

describe.each(all)("the schema of $kind for $word", ({ type, vendor }) => {
  const model = modelOf(type);
  const { schema, example, read } = createTaskSchemas({ tasksOf: () => vendor.tasks }).of(model);
  const strict = compile(schema);

  it("the schema of $kind for $word is draft 2020-12, and its example is valid to others and here", () => {
    expect(schema["$schema"]).toBe("https://json-schema.org/draft/2020-12/schema");
    expect([strict(example), strict.errors]).toEqual([true, null]);
    expect(read(example)).toEqual(example);
  });

  it("the schema of $kind for $word refuses elsewhere what is refused here: nothing at all, and what it does not know", () => {
    for (const params of [{}, { ...example, unheard: 1 }]) {
      expect(strict(params), JSON.stringify(params)).toBe(false);
      expect(() => read(params)).toThrow();
    }
  });
});

it("R-VND-3: files that Replicate keeps for its account are refused, for every caller and spelling", () => {
  const of = (key: string) => vendors.find(({ kind }) => kind === key)?.vendor.tasks;
  const second = { ...modelOf(ModelType.IMAGE), routes: ["openai-compatible", "replicate"] };
  const model = {
    ...second,
    routes: second.routes.map((vendor) => ({ vendor, model: "owner/name" })),
  };
  const alone = createTaskSchemas({ tasksOf: () => of("replicate") }).of(model);
  const both = createTaskSchemas({ tasksOf: ({ vendor }) => of(vendor) }).of(model);
  const file = "https://api.replicate.com/v1/files/abc";
  const refused = (place: string): RegExp =>
    new RegExp(`"imageParams\\.${place}".*does not know its owner`);
  expect(() => alone.read({ prompt: "x", imageUrls: [file] })).toThrow(refused("imageUrls\\[0\\]"));
  expect(() => both.read({ prompt: "x", extra: { image: file } })).toThrow(refused("extra.image"));
  const spellings = [
    file,
    " HTTPS://API.Replicate.com./v1//files/abc/download",
    "https:api.replicate.com\\v1\\files\\abc",
    "https://user@api.replicate.com:443/x/../v1/%66iles%2Fabc",
    "http://127.0.0.1:9/v1/files/abc",
  ];
  for (const address of spellings) {
    const extra = { pictures: [{ from: address }] };
    expect(() => alone.read({ prompt: "x", extra }), address).toThrow(
      refused("extra.pictures\\[0\\].from"),
    );
  }
  const foreign = [
    "https://cdn.example/v1/files/abc",
    "https://replicate.delivery/a.png",
    "v1/files/a",
  ];
  const params = { prompt: file.slice(8), extra: { foreign } };
  expect(alone.read(params)).toEqual(params);
});

it("there is one of every kind and type", () => {
  const kinds = new Set(all.map(({ kind }) => kind));
  const types = new Set(all.map(({ type }) => type));
  const withTasks = vendors.filter(({ modelTypes }) =>
    modelTypes.some((type) => taskTypes.has(type)),
  );
  expect(kinds).toEqual(new Set(withTasks.map(({ kind }) => kind)));
  expect(kinds).toContain("demo");
  expect(types).toEqual(
    new Set([ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO]),
  );
});

it("R-TSK-2: a model whose vendor runs no tasks has none, and reports it", () => {
  const schemas = createTaskSchemas({ tasksOf: () => undefined });
  expect(() => schemas.of(modelOf(ModelType.IMAGE))).toThrow("does not run tasks");
});
