/** The SDKs' reading of a relayed stream that fails (R-ERR-6). */
import { createAnthropic } from "@ai-sdk/anthropic";
import Anthropic from "@anthropic-ai/sdk";
import { streamText } from "ai";
import AnthropicV0 from "anthropic-sdk-v0";
import { describe, expect, it } from "vitest";
import { messages as style } from "../../../../src/dialect/messages/dialect.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { event, relayed } from "../relaying.ts";

const lost = new GatewayError(ErrorCode.UPSTREAM_OVERLOADED, "The model's vendor is overloaded");
const begun =
  event({
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "vendor-model",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  }) +
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }) +
  event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hel" } });

/** Answers with the beginning of a stream, and then the error. */
function failing(): Promise<Response> {
  const { text, relay } = relayed(style, begun, { model: "public" });
  const headers = { "content-type": "text/event-stream" };
  return Promise.resolve(new Response(text + relay.errorEvent(lost).toString(), { headers }));
}

const address = { apiKey: "x", baseURL: "http://gateway.test", fetch: failing };
const ask = {
  model: "public",
  max_tokens: 16,
  messages: [{ role: "user" as const, content: "hi" }],
  stream: true as const,
};

describe("a messages stream that fails", () => {
  it.each([
    ["1", () => new Anthropic(address).messages.create(ask)],
    ["0", () => new AnthropicV0(address).messages.create(ask)],
  ])(
    "a messages stream that fails is an error with its type and code in version %s of the SDK",
    async (_version, open) => {
      const seen: unknown[] = [];
      const read = async (): Promise<void> => {
        for await (const each of await open()) seen.push(each);
      };
      await expect(read()).rejects.toMatchObject({
        error: {
          type: "error",
          error: {
            type: "overloaded_error",
            message: lost.message,
            details: { error_code: "upstream_overloaded" },
          },
        },
      });
      expect(seen).toMatchObject([
        { message: { model: "public" } },
        {},
        { delta: { text: "hel" } },
      ]);
    },
  );

  it("a messages stream that fails is an error with its message in the AI SDK", async () => {
    const model = createAnthropic(address)("public");
    const result = streamText({ model, prompt: "hi", maxOutputTokens: 16, onError: () => {} });
    const errors: unknown[] = [];
    for await (const part of result.fullStream) if (part.type === "error") errors.push(part.error);
    expect(errors).toHaveLength(1);
    expect(JSON.stringify(errors[0])).toContain("overloaded");
  });
});
