import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { ToolChoiceMode } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { ReasoningMode, ResponseFormatType } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { bodyWith, encode, type GenerationInit, parse, text, user } from "./generation.ts";

const turns = [user(text("Hi"))];
const droppedOf = (init: GenerationInit, model?: string): readonly string[] =>
  encode({ conversation: { turns }, ...init }, model).dropped;

describe("settings", () => {
  it("settings go by Gemini's names", () => {
    const body = bodyWith({
      maxOutputTokens: 100,
      temperature: 0,
      topP: 0.5,
      topK: 3,
      stop: ["END"],
      seed: -5n,
      presencePenalty: 1,
      frequencyPenalty: -1,
      serviceTier: "default",
    });
    expect(body["generationConfig"]).toEqual({
      maxOutputTokens: 100,
      temperature: 0,
      topP: 0.5,
      topK: 3,
      stopSequences: ["END"],
      seed: -5,
      presencePenalty: 1,
      frequencyPenalty: -1,
    });
    expect(body["serviceTier"]).toBe("standard");
  });

  it("settings are left out where nothing is set", () => {
    expect(bodyWith({ serviceTier: "auto" })).toEqual({
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
    });
  });

  it("R-TXT-2 settings are named where Gemini has no such thing", () => {
    const init: GenerationInit = {
      seed: 2n ** 40n,
      verbosity: "low",
      endUser: "u",
      cacheKey: "k",
      serviceTier: "scale",
      extras: [
        { name: "logit_bias", json: "{}" },
        { name: "n", json: "1" },
        { name: "modalities", json: '["text"]' },
      ],
    };
    expect(droppedOf(init)).toEqual([
      "verbosity",
      "end_user",
      "cache_key",
      "seed",
      "service_tier",
      "logit_bias",
      "n",
      "modalities",
    ]);
    expect(bodyWith(init)).toEqual(bodyWith({}));
  });

  it.each([
    ["n", "2"],
    ["modalities", '["text","audio"]'],
    ["web_search_options", "{}"],
    ["previous_response_id", '"resp_1"'],
    ["background", "true"],
    ["mcp_servers", "[{}]"],
  ])("R-TXT-2 refuses %s %s, which asks for another reply", (name, json) => {
    expect(() => bodyWith({ extras: [{ name, json }] })).toThrow(`"${name}" is not supported`);
  });

  it("leaves more stop sequences than Gemini takes to the gateway", () => {
    const body = bodyWith({ stop: ["1", "2", "3", "4", "5", "6"] });
    expect(body).toMatchObject({ generationConfig: { stopSequences: ["1", "2", "3", "4", "5"] } });
  });
});

describe("the form of the reply", () => {
  const { JSON_OBJECT, JSON_SCHEMA, TEXT } = ResponseFormatType;

  it.each([
    [{ type: TEXT }, undefined],
    [{ type: JSON_OBJECT }, { responseMimeType: "application/json" }],
    [
      { type: JSON_SCHEMA, name: "n", schemaJson: '{"type":"object","$ref":"#"}', strict: true },
      {
        responseMimeType: "application/json",
        responseJsonSchema: { type: "object", $ref: "#" },
      },
    ],
  ])("the form of the reply is requested in Gemini's words: %j", (responseFormat, config) => {
    expect(bodyWith({ responseFormat })["generationConfig"]).toEqual(config);
    expect(droppedOf({ responseFormat })).toEqual([]);
  });

  it("R-TXT-2 the form of the reply refuses a schema that is none", () => {
    const responseFormat = { type: JSON_SCHEMA, schemaJson: "[]" };
    expect(() => bodyWith({ responseFormat })).toThrow("must be a JSON object");
  });
});

describe("reasoning", () => {
  const { DISABLED, ADAPTIVE, BUDGET } = ReasoningMode;

  it.each([
    ["gemini-2.5-flash", { effort: "none" }, { thinkingBudget: 0 }, []],
    ["gemini-2.5-flash", { mode: DISABLED }, { thinkingBudget: 0 }, []],
    ["gemini-2.5-pro", { mode: DISABLED }, { thinkingBudget: 128 }, ["reasoning.mode"]],
    ["gemini-2.5-pro", { effort: "none" }, { thinkingBudget: 128 }, ["reasoning.effort"]],
    ["gemini-2.5-flash", { effort: "low" }, { thinkingBudget: 1024 }, []],
    ["gemini-2.5-flash", { effort: "high" }, { thinkingBudget: 24_576 }, []],
    ["gemini-2.5-flash", { effort: "wild" }, undefined, ["reasoning.effort"]],
    [
      "gemini-2.5-flash",
      { mode: BUDGET, budgetTokens: 2000, effort: "low" },
      { thinkingBudget: 2000, includeThoughts: true },
      ["reasoning.effort"],
    ],
    ["gemini-2.5-flash", { mode: ADAPTIVE }, { thinkingBudget: -1, includeThoughts: true }, []],
    ["gemini-2.5-flash", { mode: ADAPTIVE, summary: "omitted" }, { thinkingBudget: -1 }, []],
    [
      "gemini-3-flash-preview",
      { effort: "none" },
      { thinkingLevel: "MINIMAL" },
      ["reasoning.effort"],
    ],
    ["gemini-3-pro-preview", { mode: DISABLED }, { thinkingLevel: "LOW" }, ["reasoning.mode"]],
    ["gemini-3-pro-preview", { effort: "minimal" }, { thinkingLevel: "LOW" }, []],
    ["gemini-3.1-pro-preview", { effort: "medium" }, { thinkingLevel: "MEDIUM" }, []],
    [
      "gemini-4-argon",
      { effort: "max", summary: "auto" },
      { thinkingLevel: "HIGH", includeThoughts: true },
      [],
    ],
    [
      "gemini-flash-latest",
      { mode: BUDGET, budgetTokens: 99 },
      { thinkingBudget: 99, includeThoughts: true },
      [],
    ],
    ["gemini-3-flash-preview", { mode: ADAPTIVE }, { includeThoughts: true }, []],
    ["gemini-2.0-flash", { effort: "high" }, undefined, ["reasoning"]],
    ["gemini-2.0-flash", { effort: "none" }, undefined, []],
    ["tunedModels/mine", { effort: "low" }, { thinkingBudget: 1024 }, []],
  ] as const)("%s gets the reasoning setting %j", (model, reasoning, thinkingConfig, dropped) => {
    const config = thinkingConfig && { thinkingConfig };
    expect(bodyWith({ reasoning }, model)["generationConfig"]).toEqual(config);
    expect(droppedOf({ reasoning }, model)).toEqual(dropped);
  });
});

describe("tools", () => {
  const tool = (name: string, more: object = {}, on: object = {}) => ({
    kind: { case: "function", value: { name, ...more } } as const,
    ...on,
  });
  const choiceOf = (toolChoice: object, tools = [tool("a"), tool("b")]) => {
    const conversation = { turns, tools, toolChoice };
    return parse(encode({ conversation }));
  };

  it("tools are function declarations with their schema as it is", () => {
    const schema = {
      type: "object",
      properties: { x: { type: ["string", "null"] } },
      $schema: "s",
    };
    const made = tool(
      "a",
      { description: "Does.", parametersJson: JSON.stringify(schema), strict: true },
      { cacheHint: {}, extras: [{ name: "defer_loading", json: "true" }] },
    );
    const conversation = { turns, tools: [made, tool("b")], parallelToolCalls: false };
    expect(bodyWith({ conversation })["tools"]).toEqual([
      {
        functionDeclarations: [
          { name: "a", description: "Does.", parametersJsonSchema: schema },
          { name: "b" },
        ],
      },
    ]);
    expect(droppedOf({ conversation })).toEqual([
      "parallel_tool_calls",
      "cache_hint",
      "tools.strict",
      "defer_loading",
    ]);
  });

  it("that take free text are functions with one text", () => {
    const value = { name: "sh", formatJson: '{"type":"grammar"}' };
    const tools = [{ kind: { case: "custom", value } as const, namespace: "os" }];
    const body = bodyWith({ conversation: { turns, tools } });
    expect(body["tools"]).toMatchObject([
      { functionDeclarations: [{ name: "os__sh", parametersJsonSchema: { required: ["input"] } }] },
    ]);
    expect(droppedOf({ conversation: { turns, tools } })).toEqual(["tools.format"]);
  });

  it("tools of Gemini itself go as they are; R-TXT-2 those of others are refused", () => {
    const own = (dialect: Dialect) => ({
      turns,
      tools: [
        {
          kind: {
            case: "opaque",
            value: { dialect, type: "web", json: '{"googleSearch":{}}' },
          } as const,
        },
      ],
    });
    const body = bodyWith({ conversation: own(Dialect.GEMINI) });
    expect(body["tools"]).toEqual([{ googleSearch: {} }]);
    expect(() => bodyWith({ conversation: own(Dialect.RESPONSES) })).toThrow('no tool "web"');
    const broken = { turns, tools: [tool("a", { parametersJson: "nope" })] };
    expect(() => bodyWith({ conversation: broken })).toThrow("must be a JSON object");
  });

  const { UNSPECIFIED, AUTO, NONE, REQUIRED, NAMED } = ToolChoiceMode;

  it.each([
    [{ mode: AUTO }, { mode: "AUTO" }],
    [{ mode: NONE }, { mode: "NONE" }],
    [{ mode: REQUIRED }, { mode: "ANY" }],
    [
      { mode: NAMED, tool: { name: "b" } },
      { mode: "ANY", allowedFunctionNames: ["b"] },
    ],
    [
      { mode: REQUIRED, allowed: [{ name: "b" }, { name: "a" }] },
      { mode: "ANY", allowedFunctionNames: ["b", "a"] },
    ],
  ])("the choice among tools is written for Gemini: %j", (choice, functionCallingConfig) => {
    expect(choiceOf(choice)["toolConfig"]).toEqual({ functionCallingConfig });
  });

  it("tools are only those that are allowed, where none must be called", () => {
    const body = choiceOf({ mode: AUTO, allowed: [{ name: "b" }] });
    expect(body["tools"]).toEqual([{ functionDeclarations: [{ name: "b" }] }]);
    expect(body["toolConfig"]).toEqual({ functionCallingConfig: { mode: "AUTO" } });
  });

  it("tools have no choice where there are none, or none was made", () => {
    expect(choiceOf({ mode: NONE }, [])).toEqual(bodyWith({}));
    expect(choiceOf({ mode: UNSPECIFIED })).not.toHaveProperty("toolConfig");
  });

  it("R-TXT-2 refuses a choice that cannot be made", () => {
    expect(() => choiceOf({ mode: REQUIRED }, [])).toThrow("there are none");
    expect(() => choiceOf({ mode: NAMED, tool: { name: "c" } })).toThrow(
      'names "c", which is not among the tools',
    );
    const opaque = { dialect: Dialect.RESPONSES, type: "mcp", json: "{}" };
    expect(() => choiceOf({ opaque })).toThrow('the tool choice "mcp"');
  });
});
