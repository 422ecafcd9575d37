/** GET /v1/models[/{id}] with `anthropic-version`: its own shape, errors and pages (R-TXT-7). */
import Anthropic, {
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  PermissionDeniedError,
} from "@anthropic-ai/sdk";
import AnthropicV0 from "anthropic-sdk-v0";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { json, useGateway } from "../../harness.ts";

const keys = ["a%2Fb", "acme/chat", "acme/deep/er", "b", "c", "public-model", "ünï code"];
const fixture = useGateway(() => ({ models: Object.fromEntries(keys.map((key) => [key, {}])) }));
const version = { "anthropic-version": "2023-06-01" };

/** The official SDK; `base` as a customer may write it. */
function anthropic(key = fixture.customer.key, base = ""): Anthropic {
  return new Anthropic({ apiKey: key, baseURL: `${fixture.gateway.url}${base}`, maxRetries: 0 });
}

async function failure(work: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return error;
  }
}

describe("list", () => {
  it.each(["", "/v1"])("gives every model to the SDK at {base}%s (R-TXT-6)", async (base) => {
    const listed: string[] = [];
    for await (const model of anthropic(undefined, base).models.list()) {
      expect(model).toMatchObject({ type: "model", display_name: model.id, lifecycle: "active" });
      expect(Number.isNaN(Date.parse(model.created_at))).toBe(false);
      listed.push(model.id);
    }
    expect(listed).toEqual(keys);
  });

  it("leaves `capabilities` out, of which the SDK expects what only the vendor knows", async () => {
    expect((await anthropic().models.retrieve("b")).capabilities).toBeNull();
  });

  it("gives every model to older versions of the SDK", async () => {
    const { key: apiKey } = fixture.customer;
    const client = new AnthropicV0({ apiKey, baseURL: fixture.gateway.url });
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(keys);
    expect(await client.models.retrieve("b")).toMatchObject({ id: "b", type: "model" });
  });

  it.each([1, 2, 3, 7, 1000])("pages by %i, each model once", async (limit) => {
    const listed: string[] = [];
    for await (const { id } of anthropic().models.list({ limit })) listed.push(id);
    expect(listed).toEqual(keys);
  });

  it.each([
    ["limit=2", ["a%2Fb", "acme/chat"], true],
    ["limit=7", keys, false],
    ["limit=2&after_id=b", ["c", "public-model"], true],
    ["after_id=public-model", ["ünï code"], false],
    ["after_id=ba", ["c", "public-model", "ünï code"], false],
    ["after_id=%C3%BCn%C3%AF%20code", [], false],
    ["limit=2&before_id=b", ["acme/chat", "acme/deep/er"], true],
    ["limit=3&before_id=b", ["a%2Fb", "acme/chat", "acme/deep/er"], false],
    ["before_id=a%252Fb", [], false],
    ["limit=1&beta=true&unknown=1", ["a%2Fb"], true],
  ])("the list of models takes ?%s", async (query, ids, hasMore) => {
    const reply = await fixture.send(`/v1/models?${query}`, { method: "GET", headers: version });
    expect(reply.status).toBe(200);
    const body = json(reply);
    expect((body["data"] as Array<{ id: string }>).map(({ id }) => id)).toEqual(ids);
    expect(body).toMatchObject({
      has_more: hasMore,
      first_id: ids.at(0) ?? null,
      last_id: ids.at(-1) ?? null,
    });
  });

  it.each([
    "limit=0",
    "limit=-1",
    "limit=1001",
    "limit=x",
    "limit=",
    "limit=1&limit=2",
    "limit=1e2",
    "after_id=a&before_id=b",
    "after_id=a&after_id=b",
  ])("the list of models refuses ?%s with 400", async (query) => {
    const reply = await fixture.send(`/v1/models?${query}`, { method: "GET", headers: version });
    expect(reply.status).toBe(400);
    expect(json(reply)).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  });
});

describe("retrieve", () => {
  it.each(keys)("gives %s to the SDK", async (id) => {
    expect(await anthropic().models.retrieve(id)).toMatchObject({ id, type: "model" });
    expect(await anthropic(undefined, "/v1").models.retrieve(id)).toMatchObject({ id });
  });
});

describe("errors", () => {
  it("401, 403 and 404 are those of the style", async () => {
    const { key } = await fixture.gateway.customer({ models: ["b"] });
    const unknownKey = "uas_00000000000000000000000000000000";
    const unauthenticated = await failure(anthropic(unknownKey).models.list());
    expect(unauthenticated).toBeInstanceOf(AuthenticationError);
    expect(unauthenticated).toMatchObject({ type: "authentication_error" });
    const denied = await failure(anthropic(key).models.retrieve("c"));
    expect(denied).toBeInstanceOf(PermissionDeniedError);
    expect(denied).toMatchObject({ type: "permission_error", errorCode: "access_denied" });
    const none = await failure(anthropic().models.retrieve("none/such"));
    expect(none).toBeInstanceOf(NotFoundError);
    expect(none).toMatchObject({ type: "not_found_error", errorCode: "model_not_found" });
    const bad = await failure(anthropic().models.list({ limit: 0 }));
    expect(bad).toBeInstanceOf(BadRequestError);
  });

  it("405 too, and paths that there are not", async () => {
    const post = await fixture.send("/v1/models", { headers: version, body: "{}" });
    expect([post.status, json(post)["type"]]).toEqual([405, "error"]);
    expect(post.headers["allow"]).toBe("GET, HEAD");
    const none = await fixture.send("/v1/files", { method: "GET", headers: version });
    expect([none.status, json(none)["type"]]).toEqual([404, "error"]);
    const unstyled = await fixture.send("/v1/files", { method: "GET" });
    expect(json(unstyled)).not.toHaveProperty("type");
  });

  it("contain no request id (R-ID-7)", async () => {
    const headers = { ...version, "x-request-id": "mine", "request-id": "mine" };
    for (const path of ["/v1/models", "/v1/models/none", "/v1/v1/models", "/v1/models?limit=0"]) {
      const reply = await fixture.send(path, { method: "GET", headers });
      expect(Object.keys(reply.headers)).not.toContain("x-request-id");
      expect(Object.keys(reply.headers)).not.toContain("request-id");
      expect(reply.body.toString()).not.toContain("request_id");
    }
  });
});

describe("both shapes", () => {
  it("both shapes have what the other's SDK reads, and differ in their errors", async () => {
    const { key: apiKey } = fixture.customer;
    const openai = new OpenAI({
      apiKey,
      baseURL: `${fixture.gateway.url}/v1/v1`,
      defaultHeaders: version,
      maxRetries: 0,
    });
    const ofOpenai = (await fixture.openai.models.list()).data;
    const known = ofOpenai.map((model) => ({ ...model, capabilities: null }));
    expect((await openai.models.list()).data).toEqual(known);
    const plain = await fixture.send("/v1/models", { method: "GET" });
    expect(json(plain)).toMatchObject({ object: "list", has_more: false, last_id: keys.at(-1) });
    const none = await fixture.send("/v1/models/none", { method: "GET" });
    expect(json(none)).toHaveProperty("error.code", "model_not_found");
  });

  it.each([{}, version])("answer HEAD as GET without its body (%j)", async (headers) => {
    const get = await fixture.send("/v1/models", { method: "GET", headers });
    const head = await fixture.send("/v1/models", { method: "HEAD", headers });
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
    const refused = await fixture.send("/v1/models", {
      method: "HEAD",
      headers: { ...headers, authorization: "" },
    });
    expect([refused.status, refused.body.length]).toEqual([401, 0]);
  });
});
