/**
 * GET and DELETE of responses that the gateway keeps itself: the official SDK, and what is refused.
 */
import { BadRequestError, NotFoundError } from "openai";
import { describe, expect, it } from "vitest";
import { newResponseId, response } from "../../../unit/responses/stored/harness.ts";
import { errorOf, json } from "../../harness.ts";
import { useState } from "./harness.ts";

const fixture = useState();

const input = Array.from({ length: 45 }, (_, i) => ({ role: "user", content: `say ${i}` }));

async function kept(of: Parameters<typeof response>[2] = {}): Promise<string> {
  const saved = response(fixture.customer.accountId, "Hi", of);
  expect(await fixture.store.save(saved)).toBe(true);
  return saved.responseId;
}

describe("with the SDK", () => {
  it("a response is retrieved as it was sent", async () => {
    const id = await kept();
    const found = await fixture.openai.responses.retrieve(id);
    expect(found).toMatchObject({ id, object: "response", model: "public-model" });
    expect(found.output_text).toBe("Hi");
  });

  it("a response is deleted, once", async () => {
    const id = await kept();
    const deleted = await fixture.openai.responses.delete(id).asResponse();
    expect(await deleted.json()).toEqual({ id, object: "response", deleted: true });
    await expect(fixture.openai.responses.retrieve(id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(fixture.openai.responses.delete(id)).rejects.toBeInstanceOf(NotFoundError);
    expect(await fixture.store.resolve(fixture.customer.accountId, id)).toBeUndefined();
  });

  it.each([
    ["asc", 0, 44],
    ["desc", 44, 0],
    [undefined, 44, 0],
  ] as const)("all input items are paged through, order %s", async (order, first, last) => {
    const id = await kept({ input });
    const listed = [];
    const query = { limit: 20, ...(order && { order }) };
    for await (const item of fixture.openai.responses.inputItems.list(id, query)) listed.push(item);
    expect(listed).toHaveLength(45);
    expect(new Set(listed.map((item) => item.id)).size).toBe(45);
    const texts = listed.map((item) =>
      item.type === "message" ? item.content.map((part) => "text" in part && part.text) : [],
    );
    expect(texts.at(0)).toEqual([`say ${first}`]);
    expect(texts.at(-1)).toEqual([`say ${last}`]);
  });

  it("`include` does no harm to the SDK's retrieve", async () => {
    const id = await kept();
    const include = ["reasoning.encrypted_content", "message.output_text.logprobs"] as const;
    const found = await fixture.openai.responses.retrieve(id, { include: [...include] });
    expect(found.id).toBe(id);
    const page = await fixture.openai.responses.inputItems.list(id, { include: [include[0]] });
    expect(page.data).toHaveLength(1);
  });
});

describe("the bytes", () => {
  it("the bytes are those that were sent, whatever JSON would make of them", async () => {
    const responseId = newResponseId();
    const body = `{ "id":"${responseId}", "n": 1.0e2, "big": 12345678901234567890, "t": "\\u00fc", "output": [] }`;
    await kept({ responseId, response: Buffer.from(body) });
    const reply = await fixture.send(`/v1/responses/${responseId}`, { method: "GET" });
    expect(reply.status).toBe(200);
    expect(reply.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(reply.body.toString()).toBe(body);
    expect(reply.headers["x-request-id"]).toBeTruthy();
  });

  it("the bytes of a page say where it begins and ends", async () => {
    const id = await kept({ input: input.slice(0, 3) });
    const path = `/v1/responses/${id}/input_items`;
    const page = json(await fixture.send(`${path}?limit=2&order=asc`, { method: "GET" }));
    const root = id.replace("resp_", "msg_");
    expect(page).toEqual({
      object: "list",
      data: [0, 1].map((i) => ({
        id: `${root}_${i}`,
        type: "message",
        status: "completed",
        role: "user",
        content: [{ type: "input_text", text: `say ${i}` }],
      })),
      first_id: `${root}_0`,
      last_id: `${root}_1`,
      has_more: true,
    });
    const after = `${path}?after=${root}_1&order=asc`;
    expect(json(await fixture.send(after, { method: "GET" }))).toMatchObject({
      first_id: `${root}_2`,
      last_id: `${root}_2`,
      has_more: false,
    });
    const end = `${path}?after=${root}_2&order=asc`;
    expect(json(await fixture.send(end, { method: "GET" }))).toEqual({
      object: "list",
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
  });

  it("the bytes of a reply come at the doubled path too (R-TXT-6)", async () => {
    const id = await kept();
    expect((await fixture.send(`/v1/v1/responses/${id}`, { method: "GET" })).status).toBe(200);
    const list = await fixture.send(`/v1/v1/responses/${id}/input_items`, { method: "GET" });
    expect(list.status).toBe(200);
    const deleted = await fixture.send(`/v1/v1/responses/${id}`, { method: "DELETE" });
    expect(json(deleted)).toEqual({ id, object: "response", deleted: true });
  });
});

describe("refused", () => {
  it("is any other account, in the same words as for an unknown id", async () => {
    const id = await kept();
    const { key } = await fixture.gateway.customer();
    const headers = { authorization: `Bearer ${key}` };
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["GET", "/input_items"],
    ] as const) {
      const told = [];
      for (const each of [id, "resp_none"]) {
        const reply = await fixture.send(`/v1/responses/${each}${path}`, { method, headers });
        expect(reply.status).toBe(404);
        told.push(JSON.stringify(errorOf(reply)).replaceAll(each, "ID"));
      }
      expect(told[0]).toBe(told[1]);
      expect(JSON.parse(told[0] ?? "")).toMatchObject({
        type: "invalid_request_error",
        code: "not_found",
        param: "response_id",
      });
    }
    expect((await fixture.send(`/v1/responses/${id}`, { method: "GET" })).status).toBe(200);
  });

  it.each(["%00", "resp_%00", "%ff", "resp_%C3%BC", "%20", "..%2f..%2fmodels", "x".repeat(100)])(
    "is the id %s: 404, without a fault of the gateway",
    async (id) => {
      for (const method of ["GET", "DELETE"]) {
        const reply = await fixture.send(`/v1/responses/${id}`, { method });
        expect([400, 404]).toContain(reply.status);
      }
    },
  );

  it.each([
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=x", "limit"],
    ["limit=1&limit=2", "limit"],
    ["limit=-1", "limit"],
    ["order=up", "order"],
    ["after=msg_none", "after"],
    ["after=a&after=b", "after"],
    ["stream=1", "stream"],
  ])("is the query %s, naming the parameter", async (query, param) => {
    const id = await kept();
    const path = `/v1/responses/${id}/input_items?${query}`;
    const reply = await fixture.send(path, { method: "GET" });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: "invalid_request", param });
  });

  it("is a stream of it: a kept response is complete", async () => {
    const id = await kept();
    await expect(fixture.openai.responses.retrieve(id, { stream: true })).rejects.toBeInstanceOf(
      BadRequestError,
    );
  });

  it("is another method, naming those that are allowed", async () => {
    const reply = await fixture.send("/v1/responses/resp_1", { method: "PUT" });
    expect(reply.status).toBe(405);
    expect(String(reply.headers["allow"]).split(", ").toSorted()).toEqual([
      "DELETE",
      "GET",
      "HEAD",
    ]);
  });

  it("is a call without a key", async () => {
    for (const method of ["GET", "DELETE"]) {
      const headers = { authorization: "" };
      const reply = await fixture.send("/v1/responses/resp_1", { method, headers });
      expect(reply.status).toBe(401);
    }
  });

  it("is nothing of a DELETE with a content type and no body", async () => {
    const id = await kept();
    const headers = { "content-type": "application/json" };
    const reply = await fixture.send(`/v1/responses/${id}`, { method: "DELETE", headers });
    expect(reply.status).toBe(200);
  });
});
