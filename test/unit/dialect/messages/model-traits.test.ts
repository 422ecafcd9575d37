import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { ReasoningMode } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { encodeMessagesRequest } from "../../../../src/dialect/messages/encode-request.ts";
import { traitsOf } from "../../../../src/dialect/messages/model-traits.ts";

/** Encodes members of chat completions for a model of Anthropic. */
function ask(model: string, members: object, maxOutputTokens = 64_000) {
  const request = { model: "m", messages: [{ role: "user", content: "hi" }], ...members };
  const bytes = Buffer.from(JSON.stringify(request));
  const generation = chatCompletions.decodeRequest(bytes, { platformAliases: false });
  const sourceDialect = Dialect.CHAT_COMPLETIONS;
  const target = { model, stream: false, maxOutputTokens, sourceDialect };
  const { body, dropped } = encodeMessagesRequest(generation, target);
  const { thinking, output_config, temperature, top_p, top_k } = JSON.parse(body.toString());
  return { thinking, output_config, temperature, top_p, top_k, dropped };
}

const high = { reasoning_effort: "high" };
const adaptive = { type: "adaptive" };

describe("wire §3, reasoning request: effort is sent in the form of each model", () => {
  it.each([
    ["claude-opus-4-20250514", { type: "enabled", budget_tokens: 24_576 }, undefined],
    ["claude-sonnet-4-5@20250929", { type: "enabled", budget_tokens: 24_576 }, undefined],
    ["us.anthropic.claude-3-7-sonnet-20250219-v1:0", { type: "enabled" }, undefined],
    ["claude-opus-4-5", { type: "enabled" }, { effort: "high" }],
    ["claude-sonnet-4-6", adaptive, { effort: "high" }],
    ["claude-opus-5", adaptive, { effort: "high" }],
    ["claude-fable-5-1", adaptive, { effort: "high" }],
    ["a-model-of-somebody-else", adaptive, { effort: "high" }],
  ])("%s gets effort in its own form: %j", (model, thinking, config) => {
    const asked = ask(model, high);
    expect(asked.thinking).toMatchObject(thinking);
    expect(asked.output_config).toEqual(config);
    expect(asked.dropped).toEqual([]);
  });

  it("a budget that stands for an effort leaves room for the reply", () => {
    expect(ask("claude-sonnet-4-5", { ...high, max_tokens: 10_000 })).toMatchObject({
      thinking: { budget_tokens: 8_000 },
      dropped: [],
    });
    expect(ask("claude-sonnet-4-5", { ...high, max_tokens: 1_200 })).toMatchObject({
      thinking: undefined,
      dropped: ["reasoning"],
    });
  });

  it("a model that does not think reports it", () => {
    expect(ask("claude-3-haiku-20240307", high)).toMatchObject({
      thinking: undefined,
      output_config: undefined,
      dropped: ["reasoning"],
    });
  });

  it("xhigh is high, and named, where the model does not know it", () => {
    const xhigh = { reasoning_effort: "xhigh" };
    expect(ask("claude-opus-4-7", xhigh).output_config).toEqual({ effort: "xhigh" });
    expect(ask("claude-opus-4-6", xhigh)).toMatchObject({
      output_config: { effort: "high" },
      dropped: ["reasoning.effort"],
    });
  });
});

describe("wire §3, reasoning request: none is the least that a model has, and named where it is more", () => {
  const none = { reasoning_effort: "none" };
  it.each([
    ["claude-sonnet-4-5", { type: "disabled" }, undefined, []],
    ["claude-haiku-5-5", { type: "disabled" }, undefined, []],
    ["claude-sonnet-5-5", { type: "between_tools" }, undefined, ["reasoning.effort"]],
    ["claude-opus-5-5", undefined, { effort: "low" }, ["reasoning.effort"]],
    ["claude-fable-5", undefined, { effort: "low" }, ["reasoning.effort"]],
    ["claude-3-haiku-20240307", undefined, undefined, []],
  ])("%s gets the least reasoning that it has: %j", (model, thinking, output_config, dropped) => {
    expect(ask(model, none)).toMatchObject({ thinking, output_config, dropped });
  });
});

describe("wire §3, temperature: what newer models refuse is named instead", () => {
  const sampling = { temperature: 0.2, top_p: 0.5 };
  it.each(["claude-opus-4-7", "claude-sonnet-5", "claude-haiku-5-5"])(
    "%s gets no temperature, and the reply names it",
    (model) => {
      expect(ask(model, sampling)).toEqual({ dropped: ["temperature", "top_p"] });
      expect(ask(model, { temperature: 1, top_p: 1 })).toEqual({ dropped: [] });
    },
  );

  it("older models get the temperature", () => {
    expect(ask("claude-sonnet-4-6", { temperature: 0.2 })).toMatchObject({ temperature: 0.2 });
  });
});

describe("a budget of a typed caller", () => {
  it("becomes adaptive, and is named, where the model takes none", () => {
    const reasoning = { mode: ReasoningMode.BUDGET, budgetTokens: 2_000 };
    expect(traitsOf("claude-opus-5-5").budgets).toBe(false);
    const generation = chatCompletions.decodeRequest(
      Buffer.from('{"model":"m","messages":[{"role":"user","content":"hi"}]}'),
      { platformAliases: false },
    );
    const { body, dropped } = encodeMessagesRequest(
      {
        ...generation,
        reasoning: {
          $typeName: "uas.inference.v1.ReasoningOptions",
          effort: "",
          summary: "",
          encrypted: false,
          ...reasoning,
        },
      },
      { model: "claude-opus-5-5", stream: false, maxOutputTokens: 9_000, sourceDialect: undefined },
    );
    expect(JSON.parse(body.toString()).thinking).toEqual(adaptive);
    expect(dropped).toEqual(["reasoning.budget_tokens"]);
  });
});
