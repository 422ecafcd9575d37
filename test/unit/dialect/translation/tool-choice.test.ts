import { crossings, directions } from "./translation.ts";

const chatTools = {
  tools: ["f", "g"].map((name) => ({ type: "function", function: { name } })),
};
const responsesTools = {
  tools: ["f", "g"].map((name) => ({ type: "function", name, parameters: null })),
};
const messagesTools = {
  tools: ["f", "g"].map((name) => ({ name, input_schema: { type: "object", properties: {} } })),
};
const both = [
  { type: "function", function: { name: "f" } },
  { type: "function", function: { name: "g" } },
];
const choose = (tool_choice: unknown) => ({ ...chatTools, tool_choice });
const chooseFlat = (tool_choice: unknown) => ({ ...responsesTools, tool_choice });
const chooseBlock = (tool_choice: unknown) => ({ ...messagesTools, tool_choice });
const calling = (functionCallingConfig: object) => ({ toolConfig: { functionCallingConfig } });
const named = { type: "function", function: { name: "g" } };

crossings("tool_choice", [
  {
    from: "chat",
    to: "messages",
    given: choose("required"),
    sent: { tool_choice: { type: "any" } },
  },
  { from: "chat", to: "messages", given: choose("none"), sent: { tool_choice: { type: "none" } } },
  { from: "chat", to: "messages", given: choose("auto"), sent: { tool_choice: { type: "auto" } } },
  {
    from: "chat",
    to: "messages",
    given: choose(named),
    sent: { tool_choice: { type: "tool", name: "g" } },
  },
  {
    from: "chat",
    to: "responses",
    given: choose(named),
    sent: { tool_choice: { type: "function", name: "g" } },
  },
  { from: "chat", to: "responses", given: choose("required"), sent: { tool_choice: "required" } },
  { from: "chat", to: "gemini", given: choose("required"), sent: calling({ mode: "ANY" }) },
  {
    from: "chat",
    to: "gemini",
    given: choose(named),
    sent: calling({ mode: "ANY", allowedFunctionNames: ["g"] }),
  },
  { from: "responses", to: "chat", given: chooseFlat("none"), sent: { tool_choice: "none" } },
  {
    from: "responses",
    to: "chat",
    given: chooseFlat({ type: "function", name: "g" }),
    sent: { tool_choice: named },
  },
  {
    from: "responses",
    to: "messages",
    given: chooseFlat("required"),
    sent: { tool_choice: { type: "any" } },
  },
  {
    from: "responses",
    to: "messages",
    given: chooseFlat({ type: "function", name: "g" }),
    sent: { tool_choice: { type: "tool", name: "g" } },
  },
  { from: "responses", to: "gemini", given: chooseFlat("none"), sent: calling({ mode: "NONE" }) },
  {
    from: "messages",
    to: "chat",
    given: chooseBlock({ type: "any" }),
    sent: { tool_choice: "required" },
  },
  {
    from: "messages",
    to: "chat",
    given: chooseBlock({ type: "tool", name: "g" }),
    sent: { tool_choice: named },
  },
  {
    from: "messages",
    to: "responses",
    given: chooseBlock({ type: "any" }),
    sent: { tool_choice: "required" },
  },
  {
    from: "messages",
    to: "responses",
    given: chooseBlock({ type: "tool", name: "g" }),
    sent: { tool_choice: { type: "function", name: "g" } },
  },
  {
    from: "messages",
    to: "gemini",
    given: chooseBlock({ type: "none" }),
    sent: calling({ mode: "NONE" }),
  },
]);

const allowed = { type: "allowed_tools", allowed_tools: { mode: "required", tools: [both[1]] } };
const allowedFlat = {
  type: "allowed_tools",
  mode: "auto",
  tools: [{ type: "function", name: "g" }],
};

crossings("tool_choice allowed_tools", [
  {
    from: "chat",
    to: "messages",
    with: "only those are sent",
    given: choose(allowed),
    sent: { tools: [{ name: "g" }], tool_choice: { type: "any" } },
    without: ["tools.1"],
  },
  {
    from: "chat",
    to: "responses",
    given: choose(allowed),
    sent: { tool_choice: { ...allowedFlat, mode: "required" }, tools: [{}, {}] },
  },
  {
    from: "chat",
    to: "gemini",
    given: choose(allowed),
    sent: calling({ mode: "ANY", allowedFunctionNames: ["g"] }),
  },
  {
    from: "responses",
    to: "chat",
    with: "only those are sent",
    given: chooseFlat(allowedFlat),
    sent: { tools: [{ function: { name: "g" } }], tool_choice: "auto" },
    without: ["tools.1"],
  },
  {
    from: "responses",
    to: "messages",
    with: "only those are sent",
    given: chooseFlat(allowedFlat),
    sent: { tools: [{ name: "g" }], tool_choice: { type: "auto" } },
    without: ["tools.1"],
  },
  {
    from: "responses",
    to: "gemini",
    with: "only those are sent",
    given: chooseFlat(allowedFlat),
    sent: { tools: [{ functionDeclarations: [{ name: "g" }] }] },
    without: ["tools.0.functionDeclarations.1"],
  },
]);

const single = { type: "auto", disable_parallel_tool_use: true };

crossings("parallel calls", [
  {
    from: "chat",
    to: "messages",
    with: "in a choice that is made for it",
    given: { ...chatTools, parallel_tool_calls: false },
    sent: { tool_choice: single },
  },
  {
    from: "chat",
    to: "messages",
    with: "in the choice that is there",
    given: { ...choose("required"), parallel_tool_calls: false },
    sent: { tool_choice: { type: "any", disable_parallel_tool_use: true } },
  },
  {
    from: "responses",
    to: "messages",
    given: { ...responsesTools, parallel_tool_calls: false },
    sent: { tool_choice: single },
  },
  ...(["chat", "responses"] as const).map((to) => ({
    from: "messages" as const,
    to,
    given: chooseBlock(single),
    sent: { parallel_tool_calls: false },
  })),
  ...directions
    .filter(({ from, to }) => from !== "messages" && to !== "messages" && to !== "gemini")
    .map((way) => ({
      ...way,
      given: {
        ...(way.from === "chat" ? chatTools : responsesTools),
        parallel_tool_calls: false,
      },
      sent: { parallel_tool_calls: false },
    })),
  {
    from: "chat",
    to: "gemini",
    with: "which cannot be told",
    given: { ...chatTools, parallel_tool_calls: false },
    dropped: ["parallel_tool_calls"],
  },
  {
    from: "messages",
    to: "gemini",
    with: "which cannot be told",
    given: chooseBlock(single),
    dropped: ["tool_choice.disable_parallel_tool_use"],
  },
]);
