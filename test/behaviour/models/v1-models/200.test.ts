/** GET /v1/models and /v1/models/{id}: the official SDK and ids that are hard to write. */
import { describe, expect, it } from "vitest";
import { priceDefault } from "../../../support/gateway.ts";
import { json, useGateway } from "../../harness.ts";

const keys = ["public-model", "acme/chat", "acme/deep/er", "ünï code", "a%2Fb"];
const price = { ...priceDefault, audioInput: 10_000_000_000n, webSearch: 10_000_000n };
const fixture = useGateway(() => ({
  models: {
    ...Object.fromEntries(keys.map((key) => [key, {}])),
    able: { isReasoning: true, price },
  },
}));

describe("list", () => {
  it("gives every model to the SDK", async () => {
    const listed: string[] = [];
    for await (const model of fixture.openai.models.list()) {
      expect(model).toMatchObject({ object: "model", owned_by: expect.any(String) });
      expect(Number.isInteger(model.created)).toBe(true);
      listed.push(model.id);
    }
    expect(listed.toSorted()).toEqual(["able", ...keys].toSorted());
  });

  it("shows a key only what it may use (R-AUTH-5)", async () => {
    const { key } = await fixture.gateway.customer({ models: ["acme/chat"] });
    const { data } = await fixture.openaiWith(key).models.list();
    expect(data.map(({ id }) => id)).toEqual(["acme/chat"]);
  });
});

describe("retrieve", () => {
  it.each(keys)("gives %s to the SDK", async (key) => {
    expect(await fixture.openai.models.retrieve(key)).toMatchObject({ id: key, object: "model" });
  });

  it.each([
    ["acme/chat", "/v1/models/acme/chat"],
    ["acme/chat", "/v1/models/acme%2Fchat"],
    ["acme/chat", "/v1/models/acme%2fchat"],
    ["acme/deep/er", "/v1/models/acme/deep%2Fer"],
    ["a%2Fb", "/v1/models/a%252Fb"],
    ["public-model", "/v1/models/public-model?x=y"],
  ])("the model %s is found at %s", async (key, path) => {
    const reply = await fixture.send(path, { method: "GET" });
    expect(reply.status).toBe(200);
    expect(json(reply)["id"]).toBe(key);
  });
});

describe("capabilities", () => {
  const none = {
    reasoning: false,
    audio_input: false,
    audio_output: false,
    web_search: false,
    web_fetch: false,
    code_execution: false,
    file_search: false,
    cache_storage: false,
  };

  it.each([
    ["public-model", none],
    ["able", { ...none, reasoning: true, web_search: true, audio_input: true }],
  ])("show what %s can do besides its type", async (key, capabilities) => {
    expect(await fixture.openai.models.retrieve(key)).toMatchObject({ capabilities });
    const { data } = await fixture.openai.models.list();
    expect(data.find(({ id }) => id === key)).toMatchObject({ capabilities });
  });
});

describe("request ids (R-ID-2, R-ID-7)", () => {
  it.each(["/v1/models", "/v1/models/public-model", "/v1/models/none", "/api/ai/models"])(
    "are not sent by %s",
    async (path) => {
      const headers = { "x-request-id": "mine", "request-id": "mine" };
      const reply = await fixture.send(path, { method: "GET", headers });
      expect(Object.keys(reply.headers)).not.toContain("x-request-id");
      expect(Object.keys(reply.headers)).not.toContain("request-id");
      expect(reply.body.toString()).not.toContain("request_id");
    },
  );
});
