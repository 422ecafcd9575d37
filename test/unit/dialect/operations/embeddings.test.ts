/**
 * Replies with embeddings: usage is read, the model's name restored, every other byte left
 * (R-TXT-1).
 */
import { describe, expect, it } from "vitest";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";
import { relayEmbeddings } from "../../../../src/dialect/operations/embeddings.ts";

function relay(text: string, publicModel?: string) {
  const { body, usage } = relayEmbeddings(Buffer.from(text), { publicModel });
  return { text: body.toString(), inputTokens: usage?.inputTokens };
}

describe("a reply", () => {
  it("a reply keeps all but its own model", () => {
    const text = ' {"data":[{"model":"v"}], "model" :"v\\u0041", "usage":{"prompt_tokens": 5}}\n';
    const restored = text.replace('"v\\u0041"', '"public/é"');
    expect(relay(text, "public/é")).toEqual({ text: restored, inputTokens: 5 });
    expect(relay(text)).toEqual({ text, inputTokens: 5 });
  });

  it.each([
    ['{"data":[{}],"usage":{"prompt_tokens":7,"total_tokens":9}}', 7],
    ['{"data":[{}],"usage":{"total_tokens":9}}', 9],
    ['{"data":[{}],"usage":{"prompt_tokens":0,"total_tokens":0}}', undefined],
    ['{"data":[{}],"usage":{"prompt_tokens":"7"}}', undefined],
    ['{"data":[{}],"usage":{"prompt_tokens":1e99}}', undefined],
    ['{"data":[{}],"usage":null}', undefined],
    ['{"data":[{}],"usage":[]}', undefined],
  ])("the reply %s reports %s tokens", (text, inputTokens) => {
    expect(relay(text).inputTokens).toBe(inputTokens);
  });

  it.each([
    "",
    "{",
    "[]",
    "{}",
    '{"data":[ ]}',
    '{"error":{}}',
    '{"data":[1,]}',
    "<html>",
    '{"a":1}{',
  ])("the reply is unreadable: %s", (text) => {
    expect(() => relay(text)).toThrow(UnreadableReplyError);
  });
});
