/** The demo vendor's token counts of its text. */
import { expect, it } from "vitest";
import { chat } from "../../../src/provider/demo/text.ts";

function replyOf(content: string, maxTokens: number) {
  const messages = [{ role: "user", content }];
  const body = { model: "instant", messages, max_tokens: maxTokens };
  return chat(body).whole();
}

it("a long word is several tokens of the demo vendor, so that its text keeps to the limit of tokens", () => {
  const reply = replyOf("x".repeat(70_000), 40);
  expect(reply).toMatchObject({
    choices: [{ finish_reason: "length" }],
    usage: { completion_tokens: 40 },
  });
  // No tokenizer has tokens of over 128 bytes.
  expect(JSON.stringify(reply).length).toBeLessThan(40 * 128);
});

it("the arguments of a tool call are tokens of the demo vendor too, and keep to the limit", () => {
  const name = "weather";
  const call = (required: string, maxTokens: number) => {
    const parameters = { type: "object", properties: { [required]: {} }, required: [required] };
    const tools = [{ type: "function", function: { name, parameters } }];
    const messages = [{ role: "user", content: "Rain?" }];
    const body = { model: "instant", messages, tools, max_tokens: maxTokens };
    return chat(body).whole();
  };
  expect(call("city", 64)).toMatchObject({
    choices: [{ finish_reason: "tool_calls" }],
    usage: { completion_tokens: 1 },
  });
  const long = call("x".repeat(70_000), 64);
  expect(long).toMatchObject({
    choices: [{ finish_reason: "length" }],
    usage: { completion_tokens: 64 },
  });
  expect(JSON.stringify(long).length).toBeLessThan(64 * 128);
});

it("the tokens of the demo vendor are the whole text", () => {
  const said = "two  spaces, 中文也可以。\n and 👍🏽";
  expect(JSON.stringify(replyOf(said, 1_000))).toContain(JSON.stringify(said).slice(1, -1));
});
