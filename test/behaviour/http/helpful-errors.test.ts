/** Errors name the remedy, in the caller's words. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { routeTable } from "../../../src/edge/rest/route-table.ts";
import { adviceFor } from "../../../src/edge/rest/unserved.ts";
import { readOutline } from "../../../src/dialect/body-members.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { findServices } from "../../contract/services.ts";
import { ask, errorOf, json, useGateway } from "../harness.ts";

const fixture = useGateway(() => ({ models: { text: {}, other: {} } }));

describe("a path of another API that is not served", () => {
  it.each([
    ["GET", "/v1/audio/voices", "audioParams"],
    ["POST", "/v1/files", "base64"],
    ["GET", "/v1/batches/batch_1", "background"],
    ["POST", "/v1/messages/batches", "textParams"],
    ["POST", "/v1/threads/t/runs", "previous_response_id"],
    ["POST", "/v1beta/models/gemini-pro:generateContent", "/gemini"],
    ["GET", "/v1beta/models", "/v1/models"],
    ["POST", "/gemini/v1beta/models/gemini-pro:generateContent", "native_prefix"],
    ["GET", "/replicate/v1/models", "native_prefix"],
    ["POST", "/openai/deployments/d/chat/completions", "/v1"],
    ["GET", "/api/tags", "/v1/models"],
  ])(
    "%s %s, which is not served, is a 404 that names what serves instead",
    async (method, path, instead) => {
      const reply = await fixture.send(path, {
        method,
        ...(method === "POST" && { body: "{}" }),
      });
      expect(reply.status).toBe(404);
      expect(errorOf(reply)).toMatchObject({ code: "not_found", type: "invalid_request_error" });
      expect(errorOf(reply)["message"]).toContain(instead);
    },
  );

  it("a name of any length is not found, and no malformed request", async () => {
    const name = "x".repeat(4_000);
    for (const path of [`/v1/models/${name}`, `/v1/responses/${name}`]) {
      const reply = await fixture.send(path, { method: "GET" });
      expect([path.slice(0, 12), reply.status]).toEqual([path.slice(0, 12), 404]);
    }
    const { status } = await fixture.send(`/uas.account.v1.SessionService/${name}`, { body: "{}" });
    expect(status).toBe(404);
  });

  it("is never one that is served", async () => {
    for (const { route } of routeTable(await findServices())) {
      const path = route.path.replace(/\{[^}]+\}/g, "some-id");
      expect([path, adviceFor(path)]).toEqual([path, undefined]);
    }
  });

  it.each([
    ["/v1/chat/completion", "did you mean /v1/chat/completions?"],
    ["/v1/v1/embedding", "did you mean /v1/embeddings?"],
    ["/api/ai/task", "did you mean /api/ai/tasks?"],
    ["/v1/audio/transcription", "did you mean /v1/audio/transcriptions?"],
    ["/v1/audio/speech/", "did you mean /v1/audio/speech?"],
    ["/v1/messages/", "did you mean /v1/messages?"],
    ["/v1/responses/", "did you mean /v1/responses?"],
    ["//v1/messages", "did you mean /v1/messages?"],
    ["/V1/Embeddings", "did you mean /v1/embeddings?"],
    ["/v1/nothing-like-this", "GET /openapi.json lists all paths"],
  ])(
    "a request for %s is answered with the path that was meant, if one is near",
    async (path, advice) => {
      const reply = await fixture.send(path, { body: "{}" });
      expect(reply.status).toBe(404);
      expect(errorOf(reply)["message"]).toContain(advice);
    },
  );

  it.each(["/v1/models", "/v1/responses", "/api/ai/tasks", "/api/ai/models"])(
    "GET %s/, which names nothing, is answered with the path without the slash",
    async (path) => {
      const reply = await fixture.send(`${path}/`, { method: "GET" });
      expect(reply.status).toBe(404);
      const message = `There is no GET ${path}/ here; did you mean ${path}?`;
      expect(errorOf(reply)).toMatchObject({ code: "not_found", message });
    },
  );

  it("the error for a path of another API without a counterpart names the base of its paths", async () => {
    const reply = await fixture.send("/chat/completions", { body: "{}" });
    expect(errorOf(reply)["message"]).toContain("followed by /v1");
  });
});

describe("an error about a member", () => {
  it("an error about a member uses the spelling of the query", async () => {
    for (const name of ["page_token", "pageToken"]) {
      const reply = await fixture.send(`/api/ai/tasks?${name}=nonsense`, { method: "GET" });
      expect(reply.status).toBe(400);
      const { message, param } = errorOf(reply);
      expect([param, String(message).split(" ")[0]]).toEqual([name, name]);
    }
  });

  it("suggests the member that was meant", async () => {
    const body = { model: "text", textParams: { prompt: "p" } };
    const reply = await fixture.send("/api/ai/tasks", { body: JSON.stringify(body) });
    expect(errorOf(reply)).toMatchObject({ param: "model" });
    expect(errorOf(reply)["message"]).toContain("did you mean `modelKey`?");
  });

  it.each([
    ["/api/ai/generate", { modelkey: "text", prompt: "p" }, "modelKey"],
    ["/api/ai/generate", { modelKey: "text", promt: "p" }, "prompt"],
    ["/api/ai/generate", { modelKey: "text", message: [] }, "messages"],
    ["/v1/chat/completions", { modell: "text", messages: [] }, "model"],
    ["/v1/chat/completions", { model: "text", mesages: [] }, "messages"],
    ["/v1/messages", { model: "text", max_token: 5, messages: [] }, "max_tokens"],
    ["/v1/responses", { model: "text", inputs: "p" }, "input"],
    ["/v1/completions", { model: "text", promt: "p" }, "prompt"],
    ["/v1/embeddings", { model: "text", inputs: "p" }, "input"],
    ["/v2/rerank", { model: "text", query: "q", document: ["a"] }, "documents"],
  ])("a required member that is misspelt at %s is suggested: %j", async (path, body, meant) => {
    const reply = await fixture.send(path, { body: JSON.stringify(body) });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)["message"]).toContain(`did you mean "${meant}"?`);
  });

  it("an error about a member refuses model and modelKey that differ, and takes them where they agree", async () => {
    const send = (modelKey: string) =>
      fixture.send("/api/ai/generate", {
        body: JSON.stringify({ ...ask, model: "text", modelKey }),
      });
    expect(errorOf(await send("other"))).toMatchObject({ param: "modelKey" });
    expect((await send("text")).status).toBe(200);
  });
});

/** The offset that the error about a body names. */
function faultOf(body: Buffer): number {
  try {
    readOutline(body);
  } catch (error) {
    if (error instanceof GatewayError) return Number(/at byte (\d+)$/.exec(error.message)?.[1]);
  }
  throw new Error("the body was accepted");
}

describe("a body that is not UTF-8", () => {
  it("a body that is not UTF-8 is refused with the offset of the first wrong byte", () => {
    const broken = fc.constantFrom([0xff], [0x80], [0xc3, 0x28], [0xe2, 0x82], [0xf0, 0x9f, 0x98]);
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 300 }),
        broken,
        fc.string({ unit: "grapheme", maxLength: 300 }),
        (before, bytes, after) => {
          const start = Buffer.from(`{"a":"${before}`);
          const body = Buffer.concat([start, Buffer.from(bytes), Buffer.from(`${after}"}`)]);
          expect(faultOf(body)).toBe(start.length);
        },
      ),
    );
  });

  it("a body that is not UTF-8 is found at the end of a large one, too", () => {
    const text = Buffer.from(`{"a":"${"é😀x".repeat(200_000)}`);
    expect(faultOf(Buffer.concat([text, Buffer.from([0xf0, 0x9f])]))).toBe(text.length);
  });
});

it("the model list has type, endpoints, price, and the date since when a model is offered", async () => {
  const started = Math.floor(Date.now() / 1_000);
  const reply = await fixture.send("/v1/models/text", { method: "GET" });
  const model = json(reply);
  expect(model).toMatchObject({
    model_type: "TEXT",
    endpoints: ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/ai/tasks"],
    price: { input: expect.stringMatching(/^\d/), output: expect.stringMatching(/^\d/) },
    max_tokens: expect.any(Number),
  });
  const created = Number(model["created"]);
  expect(created).toBeGreaterThan(started - 3_600);
  expect(created).toBeLessThanOrEqual(Date.now() / 1_000);
  expect(Date.parse(String(model["created_at"]))).toBe(created * 1_000);
});
