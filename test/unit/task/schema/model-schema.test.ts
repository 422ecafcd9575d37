/** GET /api/ai/models/{id}/schema. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Customer, openTasks, type Tasks } from "../harness.ts";

let tasks: Tasks;
let customer: Customer;
beforeAll(async () => {
  tasks = await openTasks();
  customer = await tasks.customer();
});
afterAll(() => tasks.close());

describe("R-MDL-1: a model's schema", () => {
  it.each([
    ["image", "IMAGE", "imageParams"],
    ["acme/film", "VIDEO", "videoParams"],
    ["text", "TEXT", "textParams"],
  ])("the schema of %s is what submits are checked with", async (modelKey, type, paramsField) => {
    const path = `/api/ai/models/${modelKey}/schema`;
    const { status, json, headers } = await tasks.send(customer, path);
    expect(status).toBe(200);
    expect(headers).not.toHaveProperty("x-request-id");
    expect(json).toMatchObject({ modelKey, type, paramsField });
    const { schema, example } = json as { schema: object; example: Record<string, string> };
    expect(schema).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      additionalProperties: false,
    });
    const body = { modelKey, [paramsField]: example };
    expect((await tasks.send(customer, "/api/ai/tasks", { body })).status).toBe(200);
  });

  it.each([
    ["closed", 403, "access_denied"],
    ["none", 404, "model_not_found"],
    ["sound", 400, "invalid_request"],
  ])("the schema of %s is answered with %i %s", async (modelKey, status, code) => {
    const reply = await tasks.send(customer, `/api/ai/models/${modelKey}/schema`);
    expect([reply.status, (reply.json["error"] as { code: string }).code]).toEqual([status, code]);
  });

  it("a model's schema has no path of another name", async () => {
    const { status, json } = await tasks.send(customer, "/api/ai/models/image/scheme");
    expect([status, (json["error"] as { code: string }).code]).toEqual([404, "not_found"]);
  });
});
