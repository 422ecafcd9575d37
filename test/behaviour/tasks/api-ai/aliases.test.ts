/** The platform's own paths for text generation (R-TXT-5) and its model list (R-MDL-1). */
import { describe, expect, it } from "vitest";
import { answer } from "../../../support/upstream/behaviour.ts";
import {
  ask,
  dataOf,
  errorOf,
  json,
  newRequestId,
  publicModel,
  useGateway,
} from "../../harness.ts";

const fixture = useGateway(() => ({ models: { [publicModel]: { name: "Public" }, other: {} } }));
const paths = ["/api/ai/generate", "/api/ai/chat/completions", "/api/ai/stream-generate"];

describe.each(paths)("%s", (path) => {
  const streams = path.endsWith("stream-generate");
  const post = (body: unknown, id = newRequestId()) =>
    fixture.send(path, { body: JSON.stringify(body), headers: { "x-request-id": id } });

  it.each([
    ["as in chat completions", ask],
    ["modelKey", { modelKey: publicModel, messages: ask.messages }],
    ["prompt", { modelKey: publicModel, prompt: 'Say "hello".\n' }],
    ["prompt first", { prompt: "Say hello.", model: publicModel, max_tokens: 5 }],
    ["both names of the model", { modelKey: publicModel, ...ask }],
  ])("the alias takes %s", async (_name, body) => {
    const id = newRequestId();
    const reply = await post(body, id);
    expect(reply.status).toBe(200);
    expect(reply.headers["x-request-id"]).toBe(id);
    const sent = fixture.upstream.last().json;
    expect(sent?.model).toBe("vendor-model");
    const content = "prompt" in body ? body.prompt : "Say hello.";
    expect(sent?.messages).toEqual([{ role: "user", content }]);
    expect(reply.headers["content-type"]).toMatch(streams ? /event-stream/ : /json/);
    expect((await fixture.gateway.call(id)).path).toBe(path);
  });

  it("streams if the body or the path requests it", async () => {
    const reply = await post({ ...ask, stream: true });
    expect(dataOf(reply.body).at(-1)).toBe("[DONE]");
    expect(reply.body.toString()).not.toContain("usage");
  });

  it("refuses prompt and messages together", async () => {
    const reply = await post({ ...ask, prompt: "x" });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: "invalid_request", param: "prompt" });
  });
});

it("streams on /api/ai/stream-generate even where the body says not to", async () => {
  fixture.upstream.script(answer());
  const reply = await fixture.send("/api/ai/stream-generate", {
    body: JSON.stringify({ ...ask, stream: false }),
  });
  expect(fixture.upstream.last().json).toMatchObject({
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(dataOf(reply.body).at(-1)).toBe("[DONE]");
});

it("the platform's names are left alone on /v1: the vendor judges them (R-TXT-1)", async () => {
  const reply = await fixture.chat({ ...ask, prompt: "x" });
  expect(reply.status).toBe(400);
  expect(errorOf(reply)["message"]).toBe("Unrecognized request argument supplied: prompt");
});

it("models are listed in the platform's words", async () => {
  const reply = await fixture.send("/api/ai/models", { method: "GET" });
  expect(reply.status).toBe(200);
  expect(json(reply)).toEqual({
    models: [
      {
        modelKey: "other",
        name: "other",
        type: "TEXT",
        price: { input: "0.25", cachedInput: "0.025", cacheWrite: "0.25", output: "2" },
        maxOutputTokens: 4_096,
        maxContextTokens: null,
        endpoints: ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/ai/tasks"],
        features: [],
        deadlineMs: 1_800_000,
        cancelBilling: "none",
      },
      expect.objectContaining({ modelKey: publicModel, name: "Public" }),
    ],
  });
});
