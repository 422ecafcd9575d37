import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { Role } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type PartInit,
  text,
  call,
  result,
  picture,
  user,
  model,
  system,
  converse,
  messagesOf,
} from "./turns.ts";

describe("R-TXT-1: turns of other styles become messages that every vendor takes", () => {
  it("turns of other styles become plain strings, and system messages in place of developer ones", () => {
    expect(
      messagesOf(
        { role: Role.SYSTEM, roleWord: "developer", parts: [text("a"), text("b")] },
        user(text("hi")),
        model(text("x")),
      ),
    ).toEqual([
      { role: "system", content: "a\n\nb" },
      { role: "user", content: "hi" },
      { role: "assistant", content: "x" },
    ]);
  });

  it("results stand directly behind their calls, before the user's text and late system text", () => {
    expect(
      messagesOf(
        model(text("t"), call("1"), call("2", "g", '{"a":1}')),
        system(text("late")),
        user(text("before"), result("1", [text("one")]), result("2", [text("two")], true)),
      ),
    ).toEqual([
      {
        role: "assistant",
        content: "t",
        tool_calls: [
          { id: "1", type: "function", function: { name: "f", arguments: "{}" } },
          { id: "2", type: "function", function: { name: "g", arguments: '{"a":1}' } },
        ],
      },
      { role: "tool", tool_call_id: "1", content: "one" },
      { role: "tool", tool_call_id: "2", content: "Error: two" },
      { role: "system", content: "late" },
      { role: "user", content: "before" },
    ]);
  });

  it("the calls of several items become one message", () => {
    expect(messagesOf(model(text("t")), model(call("1")), model(call("2")))).toMatchObject([
      { role: "assistant", content: "t", tool_calls: [{ id: "1" }, { id: "2" }] },
    ]);
  });

  it("pictures of results become a user message behind all results", () => {
    expect(
      messagesOf(
        model(call("1"), call("2")),
        user(result("1", [picture]), result("2", [text("two")]), text("and?")),
      ).slice(1),
    ).toEqual([
      { role: "tool", tool_call_id: "1", content: "See the attachment that follows." },
      { role: "tool", tool_call_id: "2", content: "two" },
      {
        role: "user",
        content: [
          { type: "text", text: "Attachment of the result of tool call 1:" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        ],
      },
      { role: "user", content: "and?" },
    ]);
  });

  it("ids that are too long are made shorter, alike for call and result", () => {
    const id = "x".repeat(60);
    const [said, answered] = messagesOf(model(call(id)), user(result(id, [])));
    expect(said.tool_calls[0].id).toMatch(/^call_[0-9a-f]{32}$/);
    expect(answered).toEqual({
      role: "tool",
      tool_call_id: said.tool_calls[0].id,
      content: "",
    });
  });
});

describe("R-TXT-3: reasoning returns only to vendors of its style", () => {
  const reasoning = (dialect: Dialect, signature: string): PartInit => ({
    kind: { case: "reasoning", value: { text: "hm", seal: { dialect, signature } } },
  });

  it("reasoning goes back under the name that it came by", () => {
    expect(
      messagesOf(model(reasoning(Dialect.CHAT_COMPLETIONS, "reasoning"), call("1")))[0],
    ).toMatchObject({
      content: null,
      reasoning: "hm",
    });
  });

  it("reasoning returns in the message that it led to, although it arrived in a separate item", () => {
    const thought = model(reasoning(Dialect.CHAT_COMPLETIONS, "reasoning_content"));
    expect(messagesOf(user(text("q")), thought, model(text("a")), model(text("b")))).toEqual([
      { role: "user", content: "q" },
      { role: "assistant", content: "a", reasoning_content: "hm" },
      { role: "assistant", content: "b" },
    ]);
    const { body, dropped } = converse({ turns: [user(text("q")), thought] });
    expect(body.messages).toEqual([{ role: "user", content: "q" }]);
    expect(dropped).toEqual(["turns.reasoning"]);
  });

  it("reasoning goes back under no other name, whatever the client says", () => {
    const [said] = messagesOf(model(reasoning(Dialect.CHAT_COMPLETIONS, "role"), text("x")));
    expect(said).toEqual({ role: "assistant", content: "x", reasoning_content: "hm" });
  });

  it("reasoning that another style sealed is left out and named", () => {
    const turns = [
      model(reasoning(Dialect.MESSAGES, "sig"), text("x")),
      model(reasoning(Dialect.GEMINI, "s")),
    ];
    const { body, dropped } = converse({ turns });
    expect(body.messages).toEqual([{ role: "assistant", content: "x" }]);
    expect(dropped).toEqual(["turns.reasoning"]);
  });
});
