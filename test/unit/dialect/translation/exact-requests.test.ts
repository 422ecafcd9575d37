/**
 * Text of a client and its model reaches the vendor byte for byte, except for white space between
 * tokens (R-TXT-14).
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  changeMembers,
  listElements,
  memberOf,
  objectMembers,
} from "../../../../src/wire/json/source.ts";
import { anyJson, anyObject, type SpelledJson } from "../../wire/json/arbitrary.ts";
import { type Caller, send, type Vendor } from "./translation.ts";

const text = JSON.stringify;
const runs = { numRuns: 40 };

/**
 * A value in JSON, by the names and places that lead to it; a string's own text where it ends in
 * one.
 */
function at(json: string, ...path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (inner, step) =>
      typeof step === "number" ? (listElements(inner).at(step) ?? "") : memberOf(inner, step),
    json,
  );
}

function unquoted(json: string): string {
  return JSON.parse(json) as string;
}

/** Content of a request: JSON of the client, or of a model in its history. */
interface Written {
  /** Arguments of a call in the history. */
  readonly args: SpelledJson;
  /** The parameters of a tool. */
  readonly schema: SpelledJson;
  /** The schema of the reply. */
  readonly format: SpelledJson;
  /** The tool's result as text. */
  readonly result: string;
}

const requests: Readonly<Record<Caller, (written: Written) => string>> = {
  chat: ({ args, schema, format, result }) =>
    `{"model":"m", "messages": [ {"role":"user","content":"hi"},
      {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":${text(args.spaced)}}}]},
      {"role":"tool","tool_call_id":"c1","content":${text(result)}}],
      "tools":[ {"type":"function","function":{"name":"f", "parameters": ${schema.spaced}}} ],
      "response_format":{"type":"json_schema","json_schema":{"name":"r","schema": ${format.spaced} }}}`,
  responses: ({ args, schema, format, result }) =>
    `{"model":"m","input":[{"role":"user","content":"hi"},
      {"type":"function_call","call_id":"c1","name":"f","arguments":${text(args.spaced)}},
      {"type":"function_call_output","call_id":"c1","output":${text(result)}}],
      "tools":[{"type":"function","name":"f","parameters":${schema.spaced} , "strict":false}],
      "text":{"format":{"type":"json_schema","name":"r","schema": ${format.spaced}}}}`,
  messages: ({ args, schema, format, result }) =>
    `{"model":"m","max_tokens":5000,"messages":[{"role":"user","content":"hi"},
      {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input": ${args.spaced} }]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":${text(result)}}]}],
      "tools":[{"name":"f","input_schema": ${schema.spaced}}],
      "output_config":{"format":{"type":"json_schema","schema":${format.spaced}}}}`,
};

/** Where a vendor reads each of them. */
const read: Readonly<Record<Vendor, (json: string) => Record<keyof Written, string>>> = {
  chat: (json) => ({
    args: unquoted(at(json, "messages", 1, "tool_calls", 0, "function", "arguments")),
    schema: at(json, "tools", 0, "function", "parameters"),
    format: at(json, "response_format", "json_schema", "schema"),
    result: unquoted(at(json, "messages", 2, "content")),
  }),
  responses: (json) => ({
    args: unquoted(at(json, "input", 1, "arguments")),
    schema: at(json, "tools", 0, "parameters"),
    format: at(json, "text", "format", "schema"),
    result: unquoted(at(json, "input", 2, "output")),
  }),
  messages: (json) => ({
    args: at(json, "messages", 1, "content", 0, "input"),
    schema: at(json, "tools", 0, "input_schema"),
    format: at(json, "output_config", "format", "schema"),
    result: unquoted(at(json, "messages", 2, "content", 0, "content")),
  }),
  gemini: (json) => ({
    args: at(json, "contents", 1, "parts", 0, "functionCall", "args"),
    schema: at(json, "tools", 0, "functionDeclarations", 0, "parametersJsonSchema"),
    format: at(json, "generationConfig", "responseJsonSchema"),
    result: unquoted(at(json, "contents", 2, "parts", 0, "functionResponse", "response", "output")),
  }),
};

/** A schema with JSON of any spelling if schemas have values: the vendor gets all of it. */
const schema = fc.record({ value: anyJson, members: anyObject }).map(({ value, members }) => {
  const write = (form: keyof SpelledJson): string =>
    `{"type":"object","additionalProperties":false,"properties":{"a":{"enum":[${value[form]}],"default":${members[form]}}},"examples":[${members[form]}],"maximum":1E400}`;
  return { tight: write("tight"), spaced: write("spaced") };
});

const written = fc.record({
  args: anyObject,
  schema,
  format: schema,
  result: anyJson.map(({ spaced }) => spaced),
});

const ways = (["chat", "responses", "messages"] as const).flatMap((from) =>
  (["chat", "responses", "messages", "gemini"] as const).map((to) => ({ from, to })),
);

describe.each(ways)("JSON in a request from a $from client to a $to vendor", (way) => {
  it("is the same text: arguments, parameters, the schema of the reply, and results", () => {
    fc.assert(
      fc.property(written, (given) => {
        const { args, ...got } = read[way.to](send(way, requests[way.from](given)).text);
        expect(got).toEqual({
          schema: given.schema.tight,
          format: given.format.tight,
          result: given.result,
        });
        // Text is not touched; `at` returns JSON without white space.
        const isText = way.from !== "messages" && (way.to === "chat" || way.to === "responses");
        expect(args).toBe(isText ? given.args.spaced : given.args.tight);
      }),
      runs,
    );
  });
});

describe("a schema that lacks what a vendor of messages demands", () => {
  it("gets it, and keeps the text of all else", () => {
    fc.assert(
      fc.property(anyJson, anyObject, (value, other) => {
        const inner = `{"type":"object","properties":{"type":{"const": ${value.spaced}}}}`;
        const format = `{"type":"object","properties":{"a":${inner},"b":{"anyOf":[${inner},{"enum":${other.spaced}}]}}, "default":${other.spaced}}`;
        const closed = `{"type":"object","properties":{"type":{"const":${value.tight}}},"additionalProperties":false}`;
        const parameters = changeMembers(other.spaced, { type: "[1.0]" });
        const request = requests.chat({
          args: { tight: "{}", spaced: "{}" },
          schema: { tight: parameters, spaced: parameters },
          format: { tight: format, spaced: format },
          result: "",
        });
        const { text: sent } = send({ from: "chat", to: "messages" }, request);
        expect(at(sent, "output_config", "format", "schema")).toBe(
          `{"type":"object","properties":{"a":${closed},"b":{"anyOf":[${closed},{"enum":${other.tight}}]}},"default":${other.tight},"additionalProperties":false}`,
        );
        const members = objectMembers(other.tight).map(({ name, json }) =>
          name === "type" ? { name, json: '"object"' } : { name, json },
        );
        const given = members.some(({ name }) => name === "type")
          ? members
          : [...members, { name: "type", json: '"object"' }];
        expect(objectMembers(at(sent, "tools", 0, "input_schema"))).toEqual(given);
      }),
      runs,
    );
  });
});

describe("members that the contract has no field for", () => {
  const bodies: Readonly<Record<Caller, (json: string) => string>> = {
    chat: (json) =>
      `{"model":"m","metadata": ${json},"x-1":${json},"messages":[{"role":"user","content":[{"type":"text","text":"hi","x": ${json}}]},{"role":"user","content":"a","x":${json}}],"tools":[{"type":"function","function":{"name":"f","x":${json}},"x":${json}}]}`,
    responses: (json) =>
      `{"model":"m","metadata":${json},"x-1":${json},"input":[{"role":"user","content":[{"type":"input_text","text":"hi","x":${json}}],"x": ${json}},{"type":"mcp_call","x":${json}}],"text":{"x":${json}},"tools":[{"type":"function","name":"f","x":${json}},{"type":"mcp","x":${json}}]}`,
    messages: (json) =>
      `{"model":"m","max_tokens":9,"x-1":${json},"metadata":{"x":${json}},"messages":[{"role":"user","content":[{"type":"text","text":"hi","x":${json}},{"type":"x_block","x": ${json}}]}],"tools":[{"name":"f","input_schema":{"type":"object"},"x":${json}},{"type":"x_20250101","name":"x","x":${json}}]}`,
  };

  it.each(["chat", "responses", "messages"] as const)(
    "keep their text from a %s client to a vendor of its style",
    (style) => {
      fc.assert(
        fc.property(anyJson, (value) => {
          fc.pre(value.tight !== "null");
          const sent = send({ from: style, to: style }, bodies[style](value.spaced)).text;
          const count = bodies[style]("\u0000").split("\u0000").length;
          const found = `:${value.tight}`;
          expect(sent.split(found).length).toBeGreaterThanOrEqual(count);
        }),
        runs,
      );
    },
  );
});

describe("a grammar of a custom tool", () => {
  const grammar = String.raw`"syntax":"lark", "definition":"start: \/x\/ \u00e9","x": 1.10`;
  const tight = String.raw`"syntax":"lark","definition":"start: \/x\/ \u00e9","x":1.10`;

  it("keeps its text between chat completions, which nest it, and responses, which do not", () => {
    const nested = `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar", "grammar": {${grammar}}}}}]}`;
    const flat = `{"model":"m","input":"hi","tools":[{"type":"custom","name":"f","format":{"type":"grammar",${grammar}}}]}`;
    for (const [from, body] of [
      ["chat", nested],
      ["responses", flat],
    ] as const) {
      const toChat = send({ from, to: "chat" }, body).text;
      expect(at(toChat, "tools", 0, "custom", "format")).toBe(
        `{"type":"grammar","grammar":{${tight}}}`,
      );
      const toResponses = send({ from, to: "responses" }, body).text;
      expect(at(toResponses, "tools", 0, "format")).toBe(`{"type":"grammar",${tight}}`);
    }
  });
});
