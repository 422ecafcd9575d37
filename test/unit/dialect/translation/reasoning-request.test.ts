import { crossings } from "./translation.ts";

const adaptive = { type: "adaptive" };
const budget = (budget_tokens: number) => ({ thinking: { type: "enabled", budget_tokens } });
const chatEffort = (reasoning_effort: string) => ({ reasoning_effort });
const effort = (word: string) => ({ reasoning: { effort: word } });
const level = (thinkingLevel: string) => ({
  generationConfig: { thinkingConfig: { thinkingLevel } },
});

crossings("reasoning request: effort → thinking", [
  ...["low", "medium", "high", "max"].map((word) => ({
    from: "chat" as const,
    to: "messages" as const,
    with: word,
    given: chatEffort(word),
    sent: { thinking: adaptive, output_config: { effort: word } },
  })),
  {
    from: "chat",
    to: "messages",
    with: "minimal",
    given: chatEffort("minimal"),
    sent: { thinking: adaptive, output_config: { effort: "low" } },
  },
  {
    from: "chat",
    to: "messages",
    with: "none",
    given: chatEffort("none"),
    sent: { thinking: { type: "disabled" } },
    without: ["output_config"],
  },
  {
    from: "chat",
    to: "messages",
    with: "an older model",
    model: "claude-sonnet-4-5",
    given: chatEffort("low"),
    sent: budget(1_024),
    without: ["output_config"],
  },
  {
    from: "chat",
    to: "responses",
    given: chatEffort("xhigh"),
    sent: { ...effort("xhigh"), include: ["reasoning.encrypted_content"] },
  },
  { from: "chat", to: "gemini", given: chatEffort("low"), sent: level("LOW") },
  {
    from: "chat",
    to: "gemini",
    with: "a model with budgets",
    model: "gemini-2.5-flash",
    given: chatEffort("high"),
    sent: { generationConfig: { thinkingConfig: { thinkingBudget: 24_576 } } },
  },
  {
    from: "chat",
    to: "gemini",
    with: "none, where it always thinks",
    given: chatEffort("none"),
    sent: level("MINIMAL"),
    dropped: ["reasoning_effort"],
  },
  { from: "responses", to: "chat", given: effort("high"), sent: chatEffort("high") },
  {
    from: "responses",
    to: "messages",
    given: { reasoning: { effort: "high", summary: "detailed" } },
    sent: { thinking: { ...adaptive, display: "summarized" }, output_config: { effort: "high" } },
  },
  {
    from: "responses",
    to: "gemini",
    given: { reasoning: { effort: "high", summary: "auto" } },
    sent: {
      generationConfig: { thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: true } },
    },
  },
  {
    from: "responses",
    to: "chat",
    with: "the length of a summary has no word",
    given: { reasoning: { effort: "high", summary: "detailed" } },
    sent: chatEffort("high"),
    dropped: ["reasoning.summary"],
  },
]);

crossings("reasoning request: thinking → effort", [
  { from: "messages", to: "chat", given: budget(1_024), sent: chatEffort("low") },
  { from: "messages", to: "chat", given: budget(4_000), sent: chatEffort("medium") },
  { from: "messages", to: "chat", given: budget(20_000), sent: chatEffort("high") },
  {
    from: "messages",
    to: "chat",
    with: "adaptive",
    given: { thinking: adaptive },
    sent: chatEffort("medium"),
    without: ["thinking", "reasoning"],
  },
  {
    from: "messages",
    to: "chat",
    with: "adaptive with an effort",
    given: { thinking: adaptive, output_config: { effort: "max" } },
    sent: chatEffort("max"),
  },
  {
    from: "messages",
    to: "chat",
    with: "disabled: many models know no such effort",
    given: { thinking: { type: "disabled" } },
    without: ["reasoning_effort"],
    dropped: ["thinking.type"],
  },
  {
    from: "messages",
    to: "chat",
    with: "between_tools has no twin",
    given: { thinking: { type: "between_tools" } },
    without: ["thinking"],
    dropped: ["thinking"],
  },
  {
    from: "messages",
    to: "responses",
    given: budget(2_000),
    sent: { reasoning: { effort: "low", summary: "auto" } },
  },
  { from: "messages", to: "responses", given: budget(20_000), sent: effort("high") },
  {
    from: "messages",
    to: "responses",
    with: "adaptive and omitted",
    given: { thinking: { ...adaptive, display: "omitted" } },
    sent: { ...effort("medium"), include: ["reasoning.encrypted_content"] },
    without: ["reasoning.summary"],
  },
  {
    from: "messages",
    to: "responses",
    with: "disabled",
    given: { thinking: { type: "disabled" } },
    sent: effort("none"),
  },
  {
    from: "messages",
    to: "gemini",
    given: { thinking: adaptive, output_config: { effort: "low" } },
    sent: {
      generationConfig: { thinkingConfig: { thinkingLevel: "LOW", includeThoughts: true } },
    },
  },
  {
    from: "messages",
    to: "gemini",
    with: "a model with budgets",
    model: "gemini-2.5-flash",
    given: budget(2_000),
    sent: { generationConfig: { thinkingConfig: { thinkingBudget: 2_000 } } },
  },
]);

const f = { type: "function", function: { name: "f" } };
const flat = { type: "function", name: "f", parameters: null };

crossings("reasoning request: thinking is illegal beside a tool that must be called", [
  {
    from: "chat",
    to: "messages",
    given: { ...chatEffort("high"), tools: [f], tool_choice: "required" },
    sent: { tool_choice: { type: "any" } },
    without: ["thinking"],
    dropped: ["reasoning_effort"],
  },
  {
    from: "responses",
    to: "messages",
    given: { ...effort("high"), tools: [flat], tool_choice: { type: "function", name: "f" } },
    sent: { tool_choice: { type: "tool", name: "f" } },
    without: ["thinking"],
    dropped: ["reasoning"],
  },
]);

const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
const item = { type: "function_call", call_id: "a", name: "f", arguments: "{}" };

crossings("reasoning request: a tool turn whose thinking did not come back goes on without", [
  {
    from: "chat",
    to: "messages",
    given: {
      ...chatEffort("high"),
      messages: [
        { role: "user", content: "q" },
        { role: "assistant", tool_calls: [call] },
        { role: "tool", tool_call_id: "a", content: "1" },
      ],
    },
    without: ["thinking"],
    dropped: ["reasoning_effort"],
  },
  {
    from: "responses",
    to: "messages",
    given: {
      ...effort("high"),
      input: [
        { role: "user", content: "q" },
        item,
        { type: "function_call_output", call_id: "a", output: "1" },
      ],
    },
    without: ["thinking"],
    dropped: ["reasoning"],
  },
]);
