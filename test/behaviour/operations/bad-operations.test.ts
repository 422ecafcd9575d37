/**
 * Bad input never gets a 5xx, never hangs, never costs money and leaves no file (R-ERR-7), on every
 * route but those of text.
 */
import { readdirSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { bodyBytesMax, jsonNumbersMax, jsonPartsMax } from "../../../src/core/limits.ts";
import { priceDefault, type TestModel } from "../../support/gateway.ts";
import type { RawRequest } from "../../support/raw-http.ts";
import { bearer } from "../rpc/harness.ts";
import { expectFree, newRequestId, useGateway } from "../harness.ts";

function model(type: ModelType, name: string, unit: object): TestModel {
  const price = { ...priceDefault, output: undefined, ...unit };
  return { type, routes: [{ vendor: "demo", model: name }], price };
}

const fixture = useGateway(() => ({
  vendors: { demo: { kind: "demo", baseUrl: "" } },
  models: {
    text: { routes: [{ vendor: "demo", model: "instant" }] },
    embedding: model(ModelType.EMBEDDING, "embedding", {}),
    rerank: model(ModelType.RERANK, "rerank", { search: 1_000n }),
    moderation: model(ModelType.MODERATION, "moderation", {}),
    audio: model(ModelType.AUDIO, "audio", { input: undefined, second: 1_000n }),
    image: model(ModelType.IMAGE, "image", { input: undefined, image: 1_000n }),
  },
}));

type Body = Readonly<Record<string, unknown>>;

/** Good bodies of JSON, and the members that must be there. */
const routes: readonly (readonly [path: string, good: Body, required: readonly string[]])[] = [
  ["/v1/audio/speech", { model: "audio", input: "Hi", voice: "demo" }, ["model", "input"]],
  ["/v1/images/generations", { model: "image", prompt: "a lighthouse" }, ["model", "prompt"]],
  ["/v1/embeddings", { model: "embedding", input: "Hi" }, ["model", "input"]],
  [
    "/v1/rerank",
    { model: "rerank", query: "a", documents: ["b"] },
    ["model", "query", "documents"],
  ],
  [
    "/v2/rerank",
    { model: "rerank", query: "a", documents: ["b"] },
    ["model", "query", "documents"],
  ],
  ["/v1/moderations", { model: "moderation", input: "Hi" }, ["model", "input"]],
  ["/v1/completions", { model: "text", prompt: "Hi" }, ["model", "prompt"]],
];

/** The files of the gateway, without the journal of its ledger. */
function filesOf(dataDir: string): readonly string[] {
  const all = readdirSync(dataDir, { recursive: true, encoding: "utf8" });
  return all.filter((name) => !name.startsWith("ledger"));
}

/** Returns the gateway's status: nothing is charged or held, and no file remains. */
async function refused(path: string, request: RawRequest): Promise<number> {
  const { gateway, customer } = fixture;
  const before = filesOf(gateway.dataDir);
  const reply = await expectFree(gateway, customer, () => fixture.send(path, request));
  expect(filesOf(gateway.dataDir)).toEqual(before);
  const told = JSON.parse(reply.body.toString()) as Record<string, unknown>;
  const { message } = (told["error"] ?? told) as Record<string, unknown>;
  expect(message, reply.body.toString()).toEqual(expect.any(String));
  expect(reply.headers["x-request-id"]).toBeDefined();
  return reply.status;
}

/** Valid values that look wrong: an empty text, and a document whose fields are all empty. */
function isRight(path: string, member: string, value: unknown): boolean {
  if (path === "/v1/moderations" || path === "/v1/completions")
    return value === "" && member !== "model";
  return path === "/v1/rerank" && member === "documents" && JSON.stringify(value) === "[{}]";
}

function deep(levels: number): unknown {
  return levels === 0 ? [] : [deep(levels - 1)];
}

function listOf<Value>(count: number, value: Value): Value[] {
  return Array.from({ length: count }, () => value);
}

describe.each(routes)("%s", (path, good, required) => {
  const sent = JSON.stringify(good);

  it("a good request is served with 200", async () => {
    expect((await fixture.send(path, { body: sent })).status).toBe(200);
  });

  it.each<[string, number, RawRequest]>([
    ["no body", 400, { body: "" }],
    ["no JSON", 400, { body: "model=x" }],
    ["a list", 400, { body: `[${sent}]` }],
    ["null", 400, { body: "null" }],
    ["a body that breaks off", 400, { body: sent.slice(0, -1) }],
    ["something behind the body", 400, { body: `${sent}x` }],
    [
      "bytes that are no UTF-8",
      400,
      { body: Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xff]), Buffer.from('"}')]) },
    ],
    ["a model that occurs twice", 400, { body: `{"model":"text",${sent.slice(1)}` }],
    ["too many levels", 400, { body: JSON.stringify({ ...good, more: deep(70) }) }],
    [
      "too many objects",
      400,
      { body: JSON.stringify({ ...good, more: listOf(jsonPartsMax, {}) }) },
    ],
    [
      "too many numbers",
      400,
      { body: JSON.stringify({ ...good, more: listOf(jsonNumbersMax + 1, 1) }) },
    ],
    ["a compressed body", 415, { body: gzipSync(sent), headers: { "content-encoding": "gzip" } }],
    ["plain text", 415, { body: sent, headers: { "content-type": "text/plain" } }],
    ["too much", 413, { body: JSON.stringify({ ...good, more: "x".repeat(bodyBytesMax) }) }],
    ["a model that nobody knows", 404, { body: JSON.stringify({ ...good, model: "nobody" }) }],
    ["a method that it does not have", 405, { method: "PUT", body: sent }],
    ["no key", 401, { body: sent, headers: { authorization: "" } }],
  ])("a request with %s is answered with %i", async (_name, status, request) => {
    expect(await refused(path, request)).toBe(status);
  });

  it.each(required)(
    "400: %s that is missing, null, empty, a number or an object",
    async (member) => {
      for (const value of [undefined, null, "", 5, {}, [], [5.5], [{}], true]) {
        if (isRight(path, member, value)) continue;
        const status = await refused(path, { body: JSON.stringify({ ...good, [member]: value }) });
        // A moderation without a model is for one that is not configured here.
        const isDefault = path === "/v1/moderations" && member === "model" && value === undefined;
        expect([member, value, status]).toEqual([member, value, isDefault ? 404 : 400]);
      }
    },
  );

  it("400: a model that is for something else", async () => {
    const other = good["model"] === "image" ? "audio" : "image";
    expect(await refused(path, { body: JSON.stringify({ ...good, model: other }) })).toBe(400);
  });
});

/** Forms: the parts that a good one has. */
const forms: readonly (readonly [path: string, model: string, file: string])[] = [
  ["/v1/audio/transcriptions", "audio", "file"],
  ["/v1/audio/translations", "audio", "file"],
  ["/v1/images/edits", "image", "image"],
];

const boundary = "a-boundary";

function field(name: string, value: string): Buffer {
  return Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
}

function filePart(name: string, bytes: Buffer, type: string): Buffer {
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"; filename="a"\r\ncontent-type: ${type}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from("\r\n")]);
}

const end = Buffer.from(`--${boundary}--\r\n`);

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** A recording of so many seconds: 8,000 samples a second of one byte. */
function wav(seconds: number): Buffer {
  const data = Buffer.alloc(8_000 * seconds, 0x80);
  const head = Buffer.from(
    "52494646000000005741564566 6d742010000000010001 00401f0000401f0000010008 0064617461".replaceAll(
      " ",
      "",
    ),
    "hex",
  );
  const size = Buffer.alloc(4);
  size.writeUInt32LE(data.length);
  head.writeUInt32LE(36 + data.length, 4);
  return Buffer.concat([head, size, data]);
}

describe.each(forms)("%s", (path, modelKey, fileName) => {
  const bytes = modelKey === "image" ? png : wav(1);
  const type = modelKey === "image" ? "image/png" : "audio/wav";
  const file = filePart(fileName, bytes, type);
  const rest = modelKey === "image" ? [field("prompt", "a lighthouse")] : [];
  const parts = [field("model", modelKey), ...rest, file];
  const form = (...pieces: readonly Buffer[]): RawRequest => ({
    body: Buffer.concat(pieces),
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
  });
  const whole = Buffer.concat([...parts, end]);

  it("a good form is served with 200", async () => {
    const reply = await fixture.send(path, form(whole));
    expect(reply.status, reply.body.toString()).toBe(200);
  });

  it.each([
    ["no boundary", 415, "multipart/form-data"],
    ["an empty boundary", 400, "multipart/form-data; boundary="],
    ["another parameter", 400, "multipart/form-data; charset=utf-8"],
    ["too long a boundary", 400, `multipart/form-data; boundary=${"x".repeat(300)}`],
  ])("a form with %s is told that it needs one (%i)", async (_name, status, contentType) => {
    const headers = { "content-type": contentType };
    const reply = await fixture.send(path, { body: whole, headers });
    expect(reply.status).toBe(status);
    expect(reply.body.toString()).toContain("boundary");
    expect(reply.body.toString()).not.toContain("needle");
  });

  it.each<[string, number, RawRequest]>([
    ["no body", 400, form()],
    ["no part", 400, form(end)],
    [
      "a form without a boundary",
      415,
      { body: whole, headers: { "content-type": "multipart/form-data" } },
    ],
    [
      "a form with another boundary",
      400,
      { body: whole, headers: { "content-type": "multipart/form-data; boundary=other" } },
    ],
    ["a form that breaks off in a part", 400, form(whole.subarray(0, whole.length - 40))],
    ["a form without its end", 400, form(...parts)],
    ["no model", 400, form(...rest, file, end)],
    ["an empty model", 400, form(field("model", ""), ...rest, file, end)],
    ["a model that occurs twice", 400, form(...parts, field("model", modelKey), end)],
    ["a model that nobody knows", 404, form(field("model", "nobody"), ...rest, file, end)],
    ["a model that is for something else", 400, form(field("model", "text"), ...rest, file, end)],
    ["no file", 400, form(field("model", modelKey), ...rest, end)],
    [
      "a file that is a text",
      400,
      form(field("model", modelKey), ...rest, field(fileName, "x"), end),
    ],
    [
      "an empty file",
      400,
      form(field("model", modelKey), ...rest, filePart(fileName, Buffer.alloc(0), type), end),
    ],
    [
      "a model as a file",
      400,
      form(filePart("model", Buffer.from(modelKey), "text/plain"), ...rest, file, end),
    ],
    ["too long a text", 400, form(...parts, field("prompt", "x".repeat(2_000_000)), end)],
    [
      "too many parts",
      400,
      form(...parts, ...Array.from({ length: 5_000 }, (_none, at) => field(`p${at}`, "x")), end),
    ],
    ["plain text", 415, { body: whole, headers: { "content-type": "text/plain" } }],
    [
      "a compressed form",
      415,
      { ...form(gzipSync(whole)), headers: { ...form().headers, "content-encoding": "gzip" } },
    ],
    ["no key", 401, { ...form(whole), headers: { ...form().headers, authorization: "" } }],
    [
      "a form announced as too long",
      413,
      { body: "", headers: { ...form().headers, "content-length": "99999999999" } },
    ],
  ])(
    "a form that is invalid is answered with its status: %s, %i",
    async (_name, status, request) => {
      expect(await refused(path, request)).toBe(status);
    },
  );

  it.runIf(modelKey === "audio")(
    "a recording without a sound is charged by the text that came of it, for its head may lie",
    async () => {
      const nothing = filePart(fileName, wav(0), type);
      const id = newRequestId();
      const request = form(field("model", modelKey), nothing, end);
      const headers = { ...request.headers, "x-request-id": id };
      const reply = await fixture.send(path, { ...request, headers });
      // Whether it is one is the vendor's to judge.
      expect(reply.status).toBe(200);
      const { cost } = await fixture.gateway.call(id);
      // 1,000 nano-dollars a second: the text takes at least one second.
      expect(cost?.amountNanos).toBeGreaterThan(0n);
      expect(cost?.amountNanos).toBeLessThan(2_000n);
    },
  );

  it("nothing remains where the client disconnects in the head, in a field or in the file", async () => {
    const { gateway, customer } = fixture;
    const before = filesOf(gateway.dataDir);
    for (const length of [0, 30, whole.indexOf("filename") + 120, whole.length - 10]) {
      await expectFree(gateway, customer, async () => {
        const request = httpRequest(`${gateway.url}${path}`, {
          method: "POST",
          headers: {
            ...bearer(customer.key),
            "content-type": `multipart/form-data; boundary=${boundary}`,
            "content-length": whole.length,
          },
        });
        const isOver = new Promise<void>((resolve) => request.once("close", () => resolve()));
        request.on("error", () => {});
        request.flushHeaders();
        await new Promise((resolve) => request.write(whole.subarray(0, length), resolve));
        request.destroy();
        await isOver;
      });
    }
    expect(filesOf(gateway.dataDir)).toEqual(before);
  });
});
