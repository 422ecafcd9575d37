/**
 * The schemas of `/openapi.json` against what a gateway answers: every operation that replies with
 * JSON is called.
 */
import { createHash } from "node:crypto";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { renderTune } from "../../../src/provider/demo/audio.ts";
import { type Customer, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";

type Json = Record<string, unknown>;
type Schema = Readonly<Record<string, unknown>>;
interface Document {
  readonly paths: Record<
    string,
    Record<string, { readonly responses: { readonly "200": { readonly content: Contents } } }>
  >;
  readonly components: Schema;
}
type Contents = Record<string, { readonly schema: Schema }>;

let gateway: Gateway;
let customer: Customer;
let document: Document;
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
const called = new Set<string>();

beforeAll(async () => {
  const price = { ...priceDefault, image: 1_000n, second: 1_000n };
  const model = (type: ModelType, name: string) => ({
    ...{ type, routes: [{ vendor: "demo", model: name }] },
    price: type === ModelType.TEXT ? priceDefault : price,
  });
  gateway = await startGateway({
    taskTimings: { pollMs: 10, pollMsMax: 10 },
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: {
      chat: model(ModelType.TEXT, "instant"),
      image: model(ModelType.IMAGE, "image"),
      slow: model(ModelType.IMAGE, "slow"),
      audio: model(ModelType.AUDIO, "audio"),
      embedding: { ...model(ModelType.EMBEDDING, "embedding"), price: priceDefault },
      rerank: { ...model(ModelType.RERANK, "rerank"), price: priceDefault },
      moderation: { ...model(ModelType.MODERATION, "moderation"), price: priceDefault },
    },
  });
  customer = await gateway.customer();
  const got = await send(`${gateway.url}/openapi.json`, { method: "GET" });
  document = JSON.parse(got.body.toString()) as Document;
});
afterAll(() => gateway?.close());

/** Calls an operation, and checks its reply. @param fill values of the path's braces */
async function call(
  verb: string,
  path: string,
  { body, fill = {} }: { body?: object | FormData; fill?: Record<string, string> } = {},
): Promise<Json> {
  called.add(`${verb} ${path}`);
  const headers = {
    authorization: `Bearer ${customer.key}`,
    ...(body !== undefined &&
      !(body instanceof FormData) && { "content-type": "application/json" }),
  };
  const at = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => fill[name] ?? "");
  const sent = body instanceof FormData ? body : body && JSON.stringify(body);
  const got = await fetch(gateway.url + at, {
    method: verb.toUpperCase(),
    headers,
    ...(sent !== undefined && { body: sent }),
  });
  const told = await got.text();
  expect([path, got.status], told).toEqual([path, 200]);
  const reply = JSON.parse(told) as Json;
  const { schema } = document.paths[path]![verb]!.responses["200"].content["application/json"]!;
  const isValid = ajv.compile({ ...schema, components: document.components });
  expect([path, isValid(reply), isValid.errors], told).toEqual([path, true, null]);
  expect(Object.keys(schema).length, `${verb} ${path} has a schema`).toBeGreaterThan(0);
  expect(schema).not.toEqual({ type: "object" });
  return reply;
}

const messages = [{ role: "user", content: "Hello" }];

it("the platform's own endpoints answer as their schemas say", async () => {
  const submit = (modelKey: string) => {
    const body = { modelKey, callbackId: `c-${modelKey}`, imageParams: { prompt: "A boat" } };
    return call("post", "/api/ai/tasks", { body });
  };
  const [made, slow] = [await submit("image"), await submit("slow")];
  const of = ({ taskId }: Json) => ({ fill: { task_id: String(taskId) } });
  await vi.waitFor(async () => {
    const task = await call("get", "/api/ai/tasks/{task_id}", of(made));
    expect(task).toMatchObject({
      status: "completed",
      resultFiles: [{ contentType: "image/png" }],
    });
  });
  await call("post", "/api/ai/tasks/{task_id}/cancel", of(slow));
  await call("get", "/api/ai/tasks");
  await call("get", "/api/ai/models");
  await call("get", "/api/ai/models/{model_key}/schema", { fill: { model_key: "image" } });
  await call("get", "/v1/key");
  await call("get", "/v1/credits");
});

it("text endpoints answer as their schemas say", async () => {
  for (const path of ["/v1/chat/completions", "/api/ai/chat/completions", "/api/ai/generate"]) {
    await call("post", path, { body: { model: "chat", messages } });
  }
  const asked = { model: "chat", input: "Hello" };
  const { id } = await call("post", "/v1/responses", { body: { ...asked, background: true } });
  const fill = { response_id: String(id) };
  await vi.waitFor(async () => {
    const response = await call("get", "/v1/responses/{response_id}", { fill });
    expect(response["status"]).toBe("completed");
  });
  await call("get", "/v1/responses/{response_id}/input_items", { fill });
  await call("post", "/v1/responses/{response_id}/cancel", { fill, body: {} });
  await call("delete", "/v1/responses/{response_id}", { fill });
  await call("post", "/v1/responses/compact", { body: asked });
  await call("post", "/v1/responses/input_tokens", { body: asked });
  await call("post", "/v1/messages", { body: { model: "chat", messages, max_tokens: 9 } });
  await call("post", "/v1/messages/count_tokens", { body: { model: "chat", messages } });
  await call("post", "/v1/completions", { body: { model: "chat", prompt: "Once" } });
  await call("get", "/v1/models");
  await call("get", "/v1/models/{model_key}", { fill: { model_key: "chat" } });
});

it("the endpoints of other models answer as their schemas say", async () => {
  await call("post", "/v1/embeddings", { body: { model: "embedding", input: "a car" } });
  await call("post", "/v1/moderations", { body: { model: "moderation", input: "a car" } });
  const ranking = { model: "rerank", query: "a car", documents: ["a car", "a boat"] };
  for (const path of ["/v1/rerank", "/v2/rerank"]) await call("post", path, { body: ranking });
  const image = { model: "image", prompt: "A boat" };
  await call("post", "/v1/images/generations", { body: image });
  const form = (model: string, name: string, file: Buffer, fields: Record<string, string> = {}) => {
    const data = new FormData();
    data.set("model", model);
    for (const [field, value] of Object.entries(fields)) data.set(field, value);
    data.set(name, new Blob([new Uint8Array(file)]), "a");
    return { body: data };
  };
  const png = Buffer.from("89504e470d0a1a0a", "hex");
  await call("post", "/v1/images/edits", form("image", "image", png, { prompt: "A boat" }));
  await call("post", "/v1/images/variations", form("image", "image", png));
  const tune = renderTune(createHash("sha256").digest(), 1);
  await call("post", "/v1/audio/transcriptions", form("audio", "file", tune));
  await call("post", "/v1/audio/translations", form("audio", "file", tune));
});

it("no operation that replies with JSON is left out above", () => {
  const described = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs)
      .filter(([, { responses }]) => "application/json" in responses["200"].content)
      .map(([verb]) => `${verb} ${path}`),
  );
  expect(described.filter((each) => !called.has(each))).toEqual([]);
});
