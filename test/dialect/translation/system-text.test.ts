import { crossings } from "./translation.ts";

const late = [
  { role: "user", content: "hi" },
  { role: "system", content: "Be brief." },
  { role: "user", content: "go on" },
];
const system = { role: "system", content: "Be brief." };

crossings("system text", [
  {
    from: "chat",
    to: "messages",
    given: {
      messages: [
        { role: "developer", content: "A" },
        { role: "system", content: "B" },
        { role: "user", content: "hi" },
      ],
    },
    sent: {
      system: [
        { type: "text", text: "A" },
        { type: "text", text: "B" },
      ],
      messages: [{ role: "user", content: "hi" }],
    },
  },
  {
    from: "chat",
    to: "responses",
    given: { messages: [{ role: "developer", content: "A" }, ...late] },
    sent: { input: [{ role: "developer", content: "A" }, { role: "user" }, system, {}] },
  },
  {
    from: "chat",
    to: "gemini",
    given: {
      messages: [
        { role: "system", content: "A" },
        { role: "user", content: "hi" },
      ],
    },
    sent: {
      systemInstruction: { parts: [{ text: "A" }] },
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
    },
  },
  {
    from: "responses",
    to: "chat",
    given: { instructions: "A", input: late },
    sent: {
      messages: [{ role: "system", content: "A" }, { role: "user", content: "hi" }, system, {}],
    },
  },
  {
    from: "responses",
    to: "messages",
    given: { instructions: "A", input: "hi" },
    sent: { system: "A", messages: [{ role: "user", content: "hi" }] },
  },
  {
    from: "responses",
    to: "gemini",
    given: { instructions: "A", input: late },
    sent: { systemInstruction: { parts: [{ text: "A" }] } },
  },
  {
    from: "messages",
    to: "chat",
    with: "blocks are joined with a separator",
    given: {
      system: [
        { type: "text", text: "A" },
        { type: "text", text: "B" },
      ],
    },
    sent: { messages: [{ role: "system", content: "A\n\nB" }, { role: "user" }] },
  },
  {
    from: "messages",
    to: "responses",
    with: "blocks are joined with a separator",
    given: {
      system: [
        { type: "text", text: "A" },
        { type: "text", text: "B" },
      ],
    },
    sent: { instructions: "A\n\nB" },
  },
  {
    from: "messages",
    to: "gemini",
    given: { system: "A" },
    sent: { systemInstruction: { parts: [{ text: "A" }] } },
  },
]);

crossings("late system text stays in its place, in front of nothing", [
  {
    from: "messages",
    to: "chat",
    given: { system: "A", messages: late },
    sent: { messages: [{ content: "A" }, { role: "user", content: "hi" }, system, {}] },
  },
  {
    from: "messages",
    to: "responses",
    given: { system: "A", messages: late },
    sent: { instructions: "A", input: [{ role: "user" }, system, { role: "user" }] },
  },
  {
    from: "messages",
    to: "gemini",
    with: "as the user's words: it knows no others",
    given: { system: "A", messages: late },
    sent: {
      systemInstruction: { parts: [{ text: "A" }] },
      contents: [
        { role: "user", parts: [{ text: "hi" }, { text: "Be brief." }, { text: "go on" }] },
      ],
    },
  },
  {
    from: "chat",
    to: "messages",
    given: { messages: late },
    sent: { messages: [{ role: "user" }, system, { role: "user" }] },
    without: ["system"],
  },
  {
    from: "responses",
    to: "messages",
    given: { input: late },
    sent: { messages: [{ role: "user" }, system, { role: "user" }] },
  },
]);

const called = [
  { role: "user", content: "hi" },
  {
    role: "assistant",
    content: [
      { type: "tool_use", id: "a", name: "f", input: {} },
      { type: "tool_use", id: "b", name: "f", input: {} },
    ],
  },
  { role: "system", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "a", content: "1" },
      { type: "tool_result", tool_use_id: "b", content: "2" },
    ],
  },
];

crossings("late system text never stands between a call and its result", [
  {
    from: "messages",
    to: "chat",
    given: { messages: called },
    sent: {
      messages: [
        { role: "user" },
        { role: "assistant", tool_calls: [{ id: "a" }, { id: "b" }] },
        { role: "tool", tool_call_id: "a" },
        { role: "tool", tool_call_id: "b" },
        system,
      ],
    },
  },
  {
    from: "messages",
    to: "gemini",
    given: { messages: called },
    sent: {
      contents: [
        {},
        {},
        {
          role: "user",
          parts: [
            { functionResponse: { id: "a" } },
            { functionResponse: { id: "b" } },
            { text: "Be brief." },
          ],
        },
      ],
    },
  },
  {
    from: "chat",
    to: "messages",
    given: {
      messages: [
        { role: "user", content: "hi" },
        {
          role: "assistant",
          tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        { role: "system", content: "Be brief." },
        { role: "tool", tool_call_id: "a", content: "1" },
      ],
    },
    sent: {
      messages: [
        {},
        { role: "assistant" },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a" }] },
        system,
      ],
    },
  },
]);
