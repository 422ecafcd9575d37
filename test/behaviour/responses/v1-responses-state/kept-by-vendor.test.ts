/**
 * GET and DELETE of responses that their vendor keeps: asked for their owner only, and passed on.
 */
import { NotFoundError } from "openai";
import { beforeEach, describe, expect, it } from "vitest";
import { newResponseId } from "../../../unit/responses/stored/harness.ts";
import { errorOf, json } from "../../harness.ts";
import { keeperSecret, useState } from "./harness.ts";

const fixture = useState();

beforeEach(() => {
  fixture.keeper.answers.clear();
  fixture.keeper.asked.length = 0;
  fixture.keeper.credentials.length = 0;
});

/** The gateway knows that the vendor keeps it. */
async function remembered(vendor = "keeper"): Promise<string> {
  const [responseId, { accountId }] = [newResponseId(), fixture.customer];
  const kept = { accountId, responseId, model: "kept-model", vendor };
  await fixture.store.remember({ ...kept, itemIds: [], bytes: 0 });
  return responseId;
}

describe("the owner", () => {
  it("the owner gets what the vendor has, byte for byte but for the model's name", async () => {
    const id = await remembered();
    const body = (model: string): string =>
      `{ "id":"${id}","object":"response", "n": 1.0e2, "new":[{"model":"x"}], "model" : "${model}", "output":[] }\n`;
    fixture.keeper.answers.set(`GET /v1/responses/${id}`, { body: body("gpt") });
    const reply = await fixture.send(`/v1/responses/${id}`, { method: "GET" });
    expect(reply.status).toBe(200);
    expect(reply.body.toString()).toBe(body("kept-model"));
    expect(fixture.keeper.credentials).toEqual([`Bearer ${keeperSecret}`]);
    expect((await fixture.openai.responses.retrieve(id)).model).toBe("kept-model");
  });

  it("the owner passes what a page is to be", async () => {
    const id = await remembered();
    const query = "limit=5&after=msg_1&order=asc&include%5B%5D=reasoning.encrypted_content";
    const body = '{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}';
    fixture.keeper.answers.set(`GET /v1/responses/${id}/input_items?${query}`, { body });
    const page = await fixture.openai.responses.inputItems.list(id, {
      limit: 5,
      after: "msg_1",
      order: "asc",
      include: ["reasoning.encrypted_content"],
    });
    expect(page.data).toEqual([]);
  });

  it("the owner deletes it at the vendor, and then here", async () => {
    const id = await remembered();
    const body = JSON.stringify({ id, object: "response", deleted: true });
    fixture.keeper.answers.set(`DELETE /v1/responses/${id}`, { body });
    await fixture.openai.responses.delete(id);
    expect(fixture.keeper.asked).toEqual([`DELETE /v1/responses/${id}`]);
    expect((await fixture.send(`/v1/responses/${id}`, { method: "GET" })).status).toBe(404);
    expect(fixture.keeper.asked).toHaveLength(1);
  });

  it("the owner can still reach it where deleting failed", async () => {
    const id = await remembered();
    fixture.keeper.answers.set(`DELETE /v1/responses/${id}`, { status: 500, body: "{}" });
    expect((await fixture.send(`/v1/responses/${id}`, { method: "DELETE" })).status).toBe(502);
    fixture.keeper.answers.set(`GET /v1/responses/${id}`, { body: `{"id":"${id}"}` });
    expect((await fixture.send(`/v1/responses/${id}`, { method: "GET" })).status).toBe(200);
  });
});

describe("another account", () => {
  it("is answered 404, and the vendor is not asked (R-VND-3)", async () => {
    const id = await remembered();
    fixture.keeper.answers.set(`GET /v1/responses/${id}`, { body: `{"id":"${id}"}` });
    const { key } = await fixture.gateway.customer();
    const other = fixture.openaiWith(key);
    await expect(other.responses.retrieve(id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(other.responses.delete(id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(other.responses.inputItems.list(id)).rejects.toBeInstanceOf(NotFoundError);
    expect(fixture.keeper.asked).toEqual([]);
  });
});

describe("a vendor that refuses", () => {
  it.each([
    [404, 404, "not_found"],
    [401, 503, "service_unavailable"],
    [403, 503, "service_unavailable"],
    [429, 429, "rate_limit_exceeded"],
    [500, 502, "upstream_error"],
    [503, 503, "upstream_overloaded"],
  ])(
    "a vendor that refuses with %i is %i %s here (R-ERR-3, R-ERR-4)",
    async (status, told, code) => {
      const id = await remembered();
      const body = '{"error":{"message":"of the vendor","code":null}}';
      fixture.keeper.answers.set(`GET /v1/responses/${id}`, { status, body });
      const reply = await fixture.send(`/v1/responses/${id}`, { method: "GET" });
      expect(reply.status).toBe(told);
      expect(errorOf(reply)).toMatchObject({ code });
      expect(reply.body.toString()).not.toContain("of the vendor");
    },
  );

  it("a vendor that refuses with 429 for the operator's empty account is no limit of the customer, and notifies the operator", async () => {
    const id = await remembered();
    const body = '{"error":{"message":"pay","code":"insufficient_quota"}}';
    fixture.keeper.answers.set(`GET /v1/responses/${id}`, { status: 429, body });
    const reply = await fixture.send(`/v1/responses/${id}`, { method: "GET" });
    expect(reply.status).toBe(503);
    const alarm = fixture.gateway.log.filter((line) => line.includes('"alarm":"money"'));
    expect(alarm).toHaveLength(1);
  });

  it("a vendor that refuses for a while says how long", async () => {
    const id = await remembered();
    const answer = { status: 429, body: "{}", headers: { "retry-after": "7" } };
    fixture.keeper.answers.set(`GET /v1/responses/${id}`, answer);
    const reply = await fixture.send(`/v1/responses/${id}`, { method: "GET" });
    expect(reply.headers["retry-after"]).toBe("7");
  });

  it("a vendor that refuses with 400 about the request is heard in its own words", async () => {
    const id = await remembered();
    const body = '{"error":{"message":"No item with id \'msg_9\'.","code":null}}';
    const path = `/v1/responses/${id}/input_items?after=msg_9`;
    fixture.keeper.answers.set(`GET ${path}`, { status: 400, body });
    const reply = await fixture.send(path, { method: "GET" });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({
      message: "No item with id 'msg_9'.",
      code: "invalid_request",
    });
  });

  it.each(["", "[]", "<html>", '{"id":', '{"id":"a"}x'])(
    "a vendor that answers %j is a 502",
    async (body) => {
      const id = await remembered();
      fixture.keeper.answers.set(`GET /v1/responses/${id}`, { body });
      const reply = await fixture.send(`/v1/responses/${id}`, { method: "GET" });
      expect(reply.status).toBe(502);
      expect(errorOf(reply)["code"]).toBe("upstream_error");
    },
  );

  it.each(["sim", "removed"])(
    "a vendor that cannot be asked any more (%s) is a 404, with the reason",
    async (vendor) => {
      const id = await remembered(vendor);
      for (const method of ["GET", "DELETE"]) {
        const reply = await fixture.send(`/v1/responses/${id}`, { method });
        expect(reply.status).toBe(404);
        expect(json(reply)).toMatchObject({
          error: { code: "not_found", message: expect.stringContaining("no longer uses") },
        });
      }
    },
  );
});
