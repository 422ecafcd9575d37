import { describe, expect, it } from "vitest";
import { crossings, type Json, send } from "./translation.ts";

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
    with: "as the user's words: not every model takes others",
    given: { messages: late },
    sent: {
      messages: [
        { role: "user", content: [{ text: "hi" }, { text: "Be brief." }, { text: "go on" }] },
      ],
    },
    without: ["system"],
  },
  {
    from: "responses",
    to: "messages",
    with: "as the user's words: not every model takes others",
    given: { input: late },
    sent: {
      messages: [
        { role: "user", content: [{ text: "hi" }, { text: "Be brief." }, { text: "go on" }] },
      ],
    },
  },
]);

const answered = { role: "assistant", content: "yes" };
const asked = { role: "user", content: "hi" };
const told = { role: "developer", content: "Be brief." };

/**
 * Conversations with a late system text, and the roles that a model gets that takes it in place.
 */
const places: readonly (readonly [string, readonly Json[], readonly string[]])[] = [
  ["last, behind the user", [asked, told], ["user", "system"]],
  [
    "between user and assistant",
    [asked, told, answered, asked],
    ["user", "system", "assistant", "user"],
  ],
  ["between two of the user", [asked, told, asked], ["user"]],
  ["behind the assistant", [asked, answered, told, asked], ["user", "assistant", "user"]],
  ["last, behind the assistant", [asked, answered, told], ["user", "assistant", "user"]],
  ["twice behind the user", [asked, told, told], ["user", "system"]],
  ["in front of all", [told, asked], ["user"]],
];

/** The roles and the texts of messages. */
function rolesOf(body: { messages: readonly Json[] }): readonly unknown[] {
  return body.messages.map(({ role }) => role);
}

describe("late system text goes to Claude only where the vendor takes it", () => {
  const sources = ["chat", "responses"] as const;
  for (const from of sources) {
    const members = (turns: readonly Json[]) =>
      from === "chat" ? { messages: turns } : { input: turns };
    it.each(places)(
      `from ${from}, to a model that takes it in place: %s`,
      (_where, turns, roles) => {
        for (const model of ["claude-opus-4-8", "claude-opus-5", "anthropic/claude-haiku-5.5"]) {
          const { body } = send({ from, to: "messages", model }, members(turns));
          expect(rolesOf(body)).toEqual(roles);
          expect(JSON.stringify(body)).toContain("Be brief.");
        }
      },
    );

    it.each(places)(`from ${from}, to a model that does not take it: %s`, (_where, turns) => {
      for (const model of [
        "claude-sonnet-4-5-20250929",
        "claude-haiku-4-5",
        "claude-opus-4-6",
        "claude-opus-4-7",
        "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
        "somebody-elses-model",
      ]) {
        const { body } = send({ from, to: "messages", model }, members(turns));
        expect(rolesOf(body)).not.toContain("system");
        expect(JSON.stringify(body)).toContain("Be brief.");
      }
    });
  }

  it("a setting of the vendor decides over the model", () => {
    const messages = [told, asked, answered, asked, told];
    const rolesWith = (lateSystem: "in_place" | "as_user" | "at_top", model: string) =>
      rolesOf(
        send({ from: "chat", to: "messages", model, quirks: { lateSystem } }, { messages }).body,
      );
    const inPlace = ["user", "assistant", "user", "system"];
    expect(rolesWith("in_place", "a-new-model")).toEqual(inPlace);
    expect(rolesWith("as_user", "claude-opus-5")).toEqual(inPlace.slice(0, 3));
    expect(rolesWith("at_top", "claude-opus-5")).toEqual(inPlace.slice(0, 3));
  });
});

describe("late system text goes to other vendors as their quirk says", () => {
  const messages = [
    { role: "system", content: "A" },
    { role: "developer", content: "B" },
    asked,
    answered,
    { role: "system", content: "C" },
    asked,
  ];

  it("in place, where nothing else is known", () => {
    const { body } = send({ from: "chat", to: "responses" }, { messages });
    expect(body.input.map(({ role }: Json) => role)).toEqual(messages.map(({ role }) => role));
  });

  it.each(["messages", "responses"] as const)("as the user's text: from %s", (from) => {
    const turns = { messages: messages.slice(2), input: messages };
    const members =
      from === "messages" ? { system: "A\n\nB", messages: turns.messages } : { input: turns.input };
    const { body } = send({ from, to: "chat", quirks: { lateSystem: "as_user" } }, members);
    expect(body.messages).toEqual([
      { role: "system", content: "A\n\nB" },
      asked,
      answered,
      { role: "user", content: "C" },
      asked,
    ]);
  });

  it.each(["messages", "responses"] as const)("at the top: from %s", (from) => {
    const members =
      from === "messages" ? { system: "A\n\nB", messages: messages.slice(2) } : { input: messages };
    const { body } = send({ from, to: "chat", quirks: { lateSystem: "at_top" } }, members);
    expect(body.messages).toEqual([
      { role: "system", content: "A\n\nB\n\nC" },
      asked,
      answered,
      asked,
    ]);
  });

  it("with the role that the vendor knows", () => {
    const { body } = send(
      { from: "chat", to: "responses", quirks: { developerRole: "refused" } },
      { messages },
    );
    expect(JSON.stringify(body)).not.toContain("developer");
  });
});

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
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a" },
            { type: "text", text: "Be brief." },
          ],
        },
      ],
    },
  },
]);
