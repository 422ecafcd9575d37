/** `/openapi.json` and `/llms.txt` describe the REST surface as the contract declares it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { routeTable } from "../../../src/edge/rest/route-table.ts";
import { findServices } from "../../contract/services.ts";
import { useGateway } from "../harness.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: Record<string, unknown> }>;
  };
  readonly responses: Record<string, { readonly content: Record<string, unknown> }>;
}
type Document = object & { readonly paths: Record<string, Record<string, Operation>> };

const routes = routeTable(await findServices());
const folder = join(import.meta.dirname, "../../../gen");
const document = JSON.parse(readFileSync(join(folder, "openapi.json"), "utf8")) as Document;
const operations = Object.values(document.paths).flatMap((verbs) => Object.values(verbs));

describe("the OpenAPI document", () => {
  it("the OpenAPI document is valid by the schema of OpenAPI 3.1", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document));
    expect([valid, errors]).toEqual([true, undefined]);
    expect(validator.version).toBe("3.1");
  });

  it("the OpenAPI document has every route of the contract but WebSockets, and no other", () => {
    const declared = routes
      .filter(({ route }) => !route.path.startsWith("/v1/v1/") && !route.webSocket)
      .map(({ route }) => `${route.method} ${route.path.replaceAll("=**", "")}`);
    const described = Object.entries(document.paths).flatMap(([path, verbs]) =>
      Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${path}`),
    );
    expect(new Set(described)).toEqual(new Set(declared));
  });

  it("the OpenAPI document has a summary and a unique id for each operation, and a parameter for each brace", () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [path, verbs] of Object.entries(document.paths)) {
      const braces = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      for (const { operationId, summary, parameters } of Object.values(verbs)) {
        expect(summary, operationId).toMatch(/^[A-Z].{10,}/);
        const named = parameters.filter((each) => each.in === "path").map(({ name }) => name);
        expect(named, operationId).toEqual(braces);
      }
    }
  });

  it("the OpenAPI document has another summary for each path that something is posted to", () => {
    const summaries = Object.values(document.paths).flatMap(({ post }) => post?.summary ?? []);
    expect(summaries.filter((each, at) => summaries.indexOf(each) !== at)).toEqual([]);
  });

  it("the OpenAPI document has the rules of the contract in its schemas", () => {
    const { get, post } = document.paths["/api/ai/tasks"] ?? {};
    const names = get?.parameters.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["pageToken", "status", "x-request-id"]));
    expect(post?.requestBody?.content["application/json"]?.schema).toMatchObject({
      required: ["modelKey"],
      properties: {
        modelKey: { type: "string", description: expect.stringContaining("model") },
        callbackId: { minLength: 1, maxLength: 255 },
        imageParams: { type: "object" },
      },
    });
  });

  it("describes which replies are streamed, and the forms of models' lists", () => {
    const chat = document.paths["/v1/chat/completions"]?.["post"];
    expect(Object.keys(chat?.responses["200"]?.content ?? {})).toEqual([
      "application/json",
      "text/event-stream",
    ]);
    const models = document.paths["/v1/models"]?.["get"];
    expect(models?.parameters.map(({ name }) => name)).toContain("anthropic-version");
  });
});

const gemini = { kind: "gemini", baseUrl: "http://127.0.0.1:9", apiKey: "x" };

describe("a gateway", () => {
  const fixture = useGateway(() => ({
    vendors: { gemini: { ...gemini, nativePrefix: "/gemini" } },
  }));
  const read = (path: string) =>
    fixture.send(path, { method: "GET", headers: { authorization: "" } });

  it("a gateway serves the generated OpenAPI document without a key", async () => {
    const { status, body } = await read("/openapi.json");
    expect([status, JSON.parse(body.toString())]).toEqual([200, document]);
  });

  it("llms.txt names every endpoint, the native prefixes and how to send the key", async () => {
    const { status, headers, body } = await read("/llms.txt");
    expect([status, headers["content-type"]]).toEqual([200, "text/plain; charset=utf-8"]);
    const text = body.toString();
    expect(text).toMatch(/^# UAS Gateway\n\n> One address/);
    for (const path of Object.keys(document.paths)) expect(text).toContain(`${path}\``);
    expect(text).toContain("- `/gemini`");
    expect(text).toContain("Authorization: Bearer");
  });
});
