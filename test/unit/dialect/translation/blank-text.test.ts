import { describe, expect, it } from "vitest";
import { type Caller, type Json, send, type Way } from "./translation.ts";

const blanks = ["", " ", "\n", " \t\r\n", "\u00a0", "\u2003\u3000", "\u0085", "\u001c"];

const call = (id: string) => ({
  id,
  type: "function",
  function: { name: "f", arguments: "{}" },
});

/** A conversation of chat completions or responses with a blank text at every place. */
function conversation(from: Caller, blank: string): Json {
  if (from === "chat") {
    return {
      messages: [
        { role: "system", content: blank },
        {
          role: "user",
          content: [
            { type: "text", text: blank },
            { type: "text", text: "q" },
          ],
        },
        { role: "assistant", content: blank },
        { role: "user", content: "go" },
        { role: "assistant", content: blank, tool_calls: [call("a")] },
        { role: "tool", tool_call_id: "a", content: [{ type: "text", text: blank }] },
        { role: "user", content: blank },
        { role: "assistant", content: "yes" },
        { role: "user", content: "end" },
      ],
    };
  }
  return {
    instructions: blank,
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: blank },
          { type: "input_text", text: "q" },
        ],
      },
      { role: "assistant", content: [{ type: "output_text", text: blank }] },
      { role: "user", content: "go" },
      { role: "assistant", content: blank },
      { type: "function_call", call_id: "a", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "a", output: blank },
      { role: "user", content: blank },
      { role: "assistant", content: "yes" },
      { role: "user", content: "end" },
    ],
  };
}

describe("texts of white space", () => {
  it.each(["chat", "responses"] as const)("from %s reach no vendor of messages", (from) => {
    for (const blank of blanks) {
      const { body, dropped } = send({ from, to: "messages" }, conversation(from, blank));
      expect(body).not.toHaveProperty("system");
      expect(body.messages).toEqual([
        {
          role: "user",
          content: [
            { type: "text", text: "q" },
            { type: "text", text: "go" },
          ],
        },
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a" }] },
        { role: "assistant", content: "yes" },
        { role: "user", content: "end" },
      ]);
      expect(dropped).toEqual([]);
    }
  });

  it("reach no vendor of chat completions that refuses them, and all others", () => {
    const way: Way = { from: "responses", to: "chat" };
    const given = conversation("responses", " \n");
    const strict = send({ ...way, quirks: { blankText: "refused" } }, given).body.messages;
    expect(strict).toEqual([
      { role: "user", content: "q" },
      { role: "user", content: "go" },
      { role: "assistant", content: null, tool_calls: [call("a")] },
      { role: "tool", tool_call_id: "a", content: "" },
      { role: "assistant", content: "yes" },
      { role: "user", content: "end" },
    ]);
    expect(JSON.stringify(send(way, given).body)).toContain(String.raw` \n`);
  });

  it("with a cache hint are named", () => {
    const part = {
      type: "text",
      text: " ",
      prompt_cache_breakpoint: { mode: "explicit" },
    };
    const messages = [{ role: "user", content: [part, { type: "text", text: "q" }] }];
    const { dropped } = send({ from: "chat", to: "messages" }, { messages });
    expect(dropped).toEqual(["prompt_cache_breakpoint"]);
  });
});
