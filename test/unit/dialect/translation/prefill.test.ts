import { describe, expect, it } from "vitest";
import { crossings, send } from "./translation.ts";

const begun = {
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", content: "{" },
  ],
};

crossings("assistant prefill", [
  { from: "messages", to: "chat", with: "it would begin anew", given: begun, refused: /continue/ },
  {
    from: "messages",
    to: "responses",
    with: "it would begin anew",
    given: begun,
    refused: /continue/,
  },
  { from: "chat", to: "messages", given: begun, sent: begun },
  {
    from: "responses",
    to: "messages",
    given: { input: begun.messages },
    sent: begun,
  },
]);

const followed = {
  messages: [...begun.messages, { role: "user", content: "Continue." }],
};

describe("a final message of the assistant", () => {
  it.each([
    "claude-opus-4-6",
    "claude-sonnet-4-6",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-fable-5",
  ])("is followed by one of the user, where %s does not continue it", (model) => {
    expect(send({ from: "chat", to: "messages", model }, begun).body).toMatchObject(followed);
    const input = begun.messages;
    expect(send({ from: "responses", to: "messages", model }, { input }).body).toMatchObject(
      followed,
    );
  });

  it.each(["claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-opus-4-5", "another"])(
    "is the last one, where %s continues it",
    (model) => {
      expect(send({ from: "chat", to: "messages", model }, begun).body.messages).toHaveLength(2);
    },
  );

  it("ends as the setting of the vendor says", () => {
    const accepted = { prefill: "accepted" } as const;
    const refused = { prefill: "refused" } as const;
    const to = "messages";
    const model = "claude-opus-5";
    expect(send({ from: "chat", to, model, quirks: accepted }, begun).body.messages).toHaveLength(
      2,
    );
    expect(send({ from: "chat", to, quirks: refused }, begun).body).toMatchObject(followed);
    const { body } = send(
      { from: "responses", to: "chat", quirks: refused },
      { input: begun.messages },
    );
    expect(body).toMatchObject(followed);
  });

  it("has no white space at its end, where the model continues it", () => {
    const messages = [begun.messages[0], { role: "assistant", content: "Well, \n" }];
    const { body } = send({ from: "chat", to: "messages" }, { messages });
    expect(body.messages[1]).toEqual({ role: "assistant", content: "Well," });
    const next = send({ from: "chat", to: "messages", model: "claude-opus-5" }, { messages });
    expect(next.body.messages[1]).toEqual({ role: "assistant", content: "Well, \n" });
  });

  it("is followed by one of the user, where the user's own was blank", () => {
    const messages = [...begun.messages, { role: "user", content: " \n" }];
    expect(send({ from: "chat", to: "messages" }, { messages }).body).toMatchObject(followed);
  });

  it("of calls without results is the last one: the vendor says what is missing", () => {
    const calls = [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }];
    const messages = [begun.messages[0], { role: "assistant", tool_calls: calls }];
    const model = "claude-opus-5";
    expect(send({ from: "chat", to: "messages", model }, { messages }).body.messages).toHaveLength(
      2,
    );
  });
});
