/** The playground's forms and streams, without a browser (R-CON-1). */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { assert, constantFrom, property, record, string } from "fast-check";
import { expect, test } from "vitest";
import { chatCode } from "../../../../console/src/playground/request-code.ts";
import {
  type Chunk,
  messageOf,
  noReply,
  withChunk,
} from "../../../../console/src/playground/chat.ts";
import {
  nameFault,
  newTool,
  parametersFault,
  toolOf,
} from "../../../../console/src/playground/tool-definition.ts";
import {
  bodyOf,
  type FunctionTool,
  requestOf,
  userMessage,
} from "../../../../console/src/playground/conversation.ts";

const run = promisify(execFile);

const weather: FunctionTool = toolOf({
  ...newTool,
  name: "get_weather",
  description: " Tells it. ",
});

test.for([
  ['{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}', undefined],
  ['{"type":"object","properties":{"a":{"items":true,"enum":[1],"anyOf":[{}]}}}', undefined],
  ["{", { kind: "syntax", path: "" }],
  ["[]", { kind: "object", path: "" }],
  ['{"properties":{}}', { kind: "root", path: "type" }],
  ['{"type":"object","properties":[]}', { kind: "object", path: "properties" }],
  ['{"type":"object","properties":{"a":"b"}}', { kind: "object", path: "properties.a" }],
  [
    '{"type":"object","properties":{"a":{"type":"text"}}}',
    { kind: "type", path: "properties.a.type" },
  ],
  ['{"type":"object","properties":{"a":{"type":[]}}}', { kind: "type", path: "properties.a.type" }],
  ['{"type":"object","description":1}', { kind: "text", path: "description" }],
  ['{"type":"object","enum":[]}', { kind: "list", path: "enum" }],
  ['{"type":"object","anyOf":{}}', { kind: "list", path: "anyOf" }],
  ['{"type":"object","anyOf":[{},{"type":1}]}', { kind: "type", path: "anyOf.1.type" }],
  ['{"type":"object","required":"a"}', { kind: "names", path: "required" }],
  ['{"type":"object","required":["a"]}', { kind: "unknownName", path: "required", detail: "a" }],
  [
    '{"type":"object","properties":{"a":{"type":"array","items":{"type":"x"}}}}',
    { kind: "type", path: "properties.a.items.type" },
  ],
] as const)("the schema %j is judged with the place of its fault", ([json, fault]) => {
  const found = parametersFault(json);
  if (fault === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(fault);
});

test("names of tools are what all vendors take, and differ", () => {
  expect(nameFault("get_weather-2", [weather])).toBeUndefined();
  expect(nameFault("", [])).toBe("empty");
  expect(nameFault("get weather", [])).toBe("letters");
  expect(nameFault("a".repeat(65), [])).toBe("letters");
  expect(nameFault("get_weather", [weather])).toBe("taken");
  expect(weather.function.description).toBe("Tells it.");
});

function put(chunks: readonly Chunk[]) {
  return chunks.reduce(withChunk, noReply);
}

function delta(value: object, finish: string | null = null): Chunk {
  return { choices: [{ delta: value, finish_reason: finish }] };
}

test("calls of tools that come in pieces and side by side become one message, with what the vendor adds", () => {
  const reply = put([
    delta({ role: "assistant", reasoning_content: "Hm" }),
    delta({
      tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "x" }, seal: 1 }],
    }),
    delta({ tool_calls: [{ index: 1, id: "b", function: { name: "y", arguments: "{}" } }] }),
    delta({ tool_calls: [{ index: 0, function: { arguments: '{"c":' } }] }),
    delta({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }),
    delta({}, "tool_calls"),
    { choices: [] },
  ]);
  expect(reply.finish).toBe("tool_calls");
  expect(messageOf(reply, true)).toEqual({
    role: "assistant",
    content: null,
    reasoning_content: "Hm",
    tool_calls: [
      { id: "a", type: "function", seal: 1, function: { name: "x", arguments: '{"c":1}' } },
      { id: "b", type: "function", function: { name: "y", arguments: "{}" } },
    ],
  });
  // A cut-off message cannot be answered.
  expect(messageOf(reply, false)).toBeUndefined();
});

test("calls of a vendor that numbers all of them alike are distinguished by their ids", () => {
  const call = (id: string) => ({ index: 0, id, function: { name: "x", arguments: id } });
  const { calls } = put([delta({ tool_calls: [call("a")] }), delta({ tool_calls: [call("b")] })]);
  expect(calls.map((each) => [each.id, each.function.arguments])).toEqual([
    ["a", "a"],
    ["b", "b"],
  ]);
});

test("a refusal is read as what was said, and nothing said is no message", () => {
  expect(messageOf(put([delta({ refusal: "No" })]), true)).toEqual({
    role: "assistant",
    content: "No",
  });
  expect(messageOf(put([delta({ content: "" }, "stop")]), true)).toBeUndefined();
});

/** Stands for curl: prints its last argument, or what comes in where that is `@-`. */
const stub = `curl() {
  while [ $# -gt 1 ]; do shift; done
  if [ "$1" = @- ]; then cat; else printf '%s\\n' "$1"; fi
}
`;

test("whatever is written, the shell gives curl the body that the page sends", async () => {
  const nasty = `it's "$HOME" \`id\` \\ \n BODY \u2028 你好 🎉`;
  const settings = { system: nasty, maxTokens: "5", temperature: "0.5", tools: [weather] };
  for (const pictures of [[], ["data:image/png;base64,iVBORw0KGgo="]]) {
    const request = requestOf("m", [userMessage(nasty, pictures)], settings);
    const [curl] = chatCode("http://host", request);
    const { stdout } = await run("sh", ["-c", `${stub}${curl?.copied?.() ?? ""}`]);
    expect(stdout).toBe(`${bodyOf(request)}\n`);
  }
});

test("for the eye pictures are short, for the clipboard whole", () => {
  const url = `data:image/png;base64,${"A".repeat(1_000)}`;
  const request = requestOf("m", [userMessage("", [url])], {
    ...{ system: "", maxTokens: "", temperature: "" },
    tools: [],
  });
  for (const { code, copied } of chatCode("http://host", request)) {
    expect(code).toContain("AAAA…");
    expect(code.length).toBeLessThan(800);
    expect(copied?.()).toContain(url);
  }
  expect(request).toEqual({
    model: "m",
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
    stream: true,
  });
});

test("every request can be written as a program", () => {
  const value = record({ model: string(), said: string(), name: constantFrom("a", "b") });
  assert(
    property(value, ({ model, said, name }) => {
      const tools = [toolOf({ ...newTool, name, description: said })];
      const request = requestOf(model, [userMessage(said, [])], {
        ...{ system: said, maxTokens: "1", temperature: "", tools },
      });
      const node = chatCode("http://host", request)[2]?.code ?? "";
      const literal = /create\((\{.*?\n\})\);/s.exec(node)?.[1] ?? "";
      expect(JSON.parse(literal)).toEqual(JSON.parse(JSON.stringify(request)));
    }),
  );
});
