/** POST /api/ai/tasks: what is refused is named, and costs nothing (R-ERR-7). */
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Customer, errorOf, openTasks, type Tasks } from "./harness.ts";

let tasks: Tasks;
let customer: Customer;
beforeAll(async () => {
  tasks = await openTasks();
  customer = await tasks.customer();
});
afterAll(() => tasks.close());

const path = "/api/ai/tasks";
const image: JsonObject = { modelKey: "image", imageParams: { prompt: "a boat" } };

interface Bad {
  readonly name: string;
  readonly body: JsonObject | string;
  readonly status?: number;
  readonly code?: string;
  /** The member in the message and `param`. */
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const callback = (callbackUrl: string): JsonObject => ({ ...image, callbackUrl });

const bad: readonly Bad[] = [
  { name: "no body", body: "" },
  { name: "no JSON", body: "{" },
  { name: "a list", body: "[]" },
  { name: "deep nesting", body: `{"modelKey":${"[".repeat(70)}${"]".repeat(70)}}` },
  { name: "a member twice", body: `{"modelKey":"image","modelKey":"image"}`, param: "modelKey" },
  { name: "both spellings", body: { ...image, model_key: "image" }, param: "model_key" },
  { name: "no model", body: { imageParams: { prompt: "p" } }, param: "modelKey" },
  { name: "a number as model", body: { ...image, modelKey: 3 }, param: "modelKey" },
  { name: "no parameters", body: { modelKey: "image" } },
  { name: "two kinds", body: { ...image, textParams: { prompt: "p" } }, param: "imageParams" },
  {
    name: "an id of the request in snake case",
    body: { ...image, requestContext: { request_id: 5 } },
    param: "requestContext.request_id",
  },
  {
    name: "the wrong kind",
    body: { modelKey: "image", textParams: { prompt: "p" } },
    param: "textParams",
  },
  {
    name: "a list as parameters",
    body: { modelKey: "image", imageParams: [1] },
    param: "imageParams",
  },
  { name: "an unknown member", body: { ...image, prompt: "p" }, param: "prompt" },
  {
    name: "an unknown one below",
    body: { ...image, requestContext: { id: "x" } },
    param: "requestContext.id",
  },
  {
    name: "an unknown parameter",
    body: { modelKey: "image", imageParams: { prompt: "p", width: 1 } },
    param: "imageParams.width",
  },
  {
    name: "__proto__",
    body: `{"modelKey":"image","imageParams":{"prompt":"p","__proto__":{"n":1}}}`,
    param: "imageParams.__proto__",
  },
  {
    name: "an oversize prompt",
    body: { modelKey: "image", imageParams: { prompt: "p".repeat(32_001) } },
    param: "imageParams.prompt",
  },
  {
    name: "a model without tasks",
    body: { modelKey: "sound", audioParams: { text: "t" } },
    param: "modelKey",
  },
  {
    name: "an unknown model",
    body: { ...image, modelKey: "none" },
    status: 404,
    code: "model_not_found",
  },
  {
    name: "a model of others",
    body: { ...image, modelKey: "closed" },
    status: 403,
    code: "access_denied",
  },
  { name: "an http callback", body: callback("http://receiver.example/x"), param: "callbackUrl" },
  { name: "a callback to loopback", body: callback("https://127.0.0.1/x"), param: "callbackUrl" },
  { name: "a callback to localhost", body: callback("https://localhost/x"), param: "callbackUrl" },
  {
    name: "a callback to a private net",
    body: callback("https://10.1.2.3/x"),
    param: "callbackUrl",
  },
  {
    name: "a callback to metadata",
    body: callback("https://169.254.169.254/"),
    param: "callbackUrl",
  },
  {
    name: "a callback by IPv6",
    body: callback("https://[::ffff:127.0.0.1]/"),
    param: "callbackUrl",
  },
  {
    name: "a callback with a password",
    body: callback("https://a:b@receiver.example/"),
    param: "callbackUrl",
  },
  { name: "a callback that is none", body: callback("receiver"), param: "callbackUrl" },
  {
    name: "a long callback id",
    body: { ...image, callbackId: "i".repeat(256) },
    param: "callbackId",
  },
  { name: "control characters", body: { ...image, callbackId: "a\nb" }, param: "callbackId" },
  {
    name: "half a character",
    body: `{"modelKey":"image","imageParams":{"prompt":"p"},"callbackId":"\\ud800"}`,
    param: "callbackId",
  },
  {
    name: "a long Idempotency-Key",
    body: image,
    headers: { "idempotency-key": "i".repeat(256) },
    param: "Idempotency-Key",
  },
  {
    name: "an Idempotency-Key that is not ASCII",
    body: image,
    headers: { "idempotency-key": Buffer.from("kü").toString("latin1") },
    param: "Idempotency-Key",
  },
  {
    name: "two of them",
    body: image,
    headers: { "idempotency-key": "a, b" },
    param: "Idempotency-Key",
  },
  {
    name: "an empty one",
    body: image,
    headers: { "idempotency-key": "" },
    param: "Idempotency-Key",
  },
  { name: "an empty callback id", body: { ...image, callbackId: "" }, param: "callbackId" },
  {
    name: "256 emoji",
    body: { ...image, callbackId: "😀".repeat(256) },
    param: "callbackId",
  },
  {
    name: "a parameter twice",
    body: `{"modelKey":"image","imageParams":{"prompt":"x","n":1,"n":4}}`,
    param: "imageParams.n",
  },
  {
    name: "one twice by another spelling, deep in a list",
    body: `{"modelKey":"text","textParams":{"messages":[{"role":"user","content":"a"},{"role":"user","content":"\\"","\\u0072ole":"user"}]}}`,
    param: "textParams.messages[1].role",
  },
  {
    name: "no JSON type",
    body: image,
    headers: { "content-type": "text/plain" },
    status: 415,
    code: "unsupported_media_type",
  },
];

describe("R-ERR-7: a 400 names the invalid parameter, and costs nothing", () => {
  it.each(bad)(
    "a task with $name is a 400 that names the parameter, and costs nothing",
    async ({ body, status = 400, code = "invalid_request", param, headers = {} }) => {
      const before = await tasks.money(customer.accountId);
      const reply = await tasks.send(customer, path, {
        body,
        headers: { "x-request-id": "bad", ...headers },
      });
      expect([reply.status, reply.headers["x-request-id"]]).toEqual([status, "bad"]);
      const error = errorOf(reply.json);
      expect(error["code"]).toBe(code);
      if (param !== undefined) {
        expect(error["param"]).toBe(param);
        expect(error["message"]).toContain(param);
      }
      expect(await tasks.money(customer.accountId)).toEqual(before);
    },
  );

  it("a suspended account is refused", async () => {
    const suspended = await tasks.customer(1n, { isSuspended: true });
    const { status, json } = await tasks.send(suspended, path, { body: image });
    expect([status, errorOf(json)["code"]]).toEqual([403, "access_denied"]);
  });
});
