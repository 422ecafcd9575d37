/** The SDKs' reading of a relayed stream that fails (R-ERR-6). */
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import OpenAI from "openai";
import OpenAIV6 from "openai-v6";
import { describe, expect, it } from "vitest";
import { responses as style } from "../../../../src/dialect/responses/dialect.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { event, relayed } from "../relaying.ts";

const lost = new GatewayError(ErrorCode.UPSTREAM_ERROR, "The model's vendor broke off");
const response = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  status: "in_progress",
  model: "vendor-model",
  output: [],
};
const item = { id: "msg_1", type: "message", status: "in_progress", role: "assistant" };
const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
const begun = [
  { type: "response.created", response },
  { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
  {
    type: "response.content_part.added",
    ...place,
    part: { type: "output_text", text: "", annotations: [] },
  },
  { type: "response.output_text.delta", ...place, delta: "hel", logprobs: [] },
]
  .map((each, index) => event({ ...each, sequence_number: index }))
  .join("");

/** Answers with the beginning of a stream, and then the error. */
function failing(): Promise<Response> {
  const { text, relay } = relayed(style, begun, { model: "public" });
  const headers = { "content-type": "text/event-stream" };
  return Promise.resolve(new Response(text + relay.errorEvent(lost).toString(), { headers }));
}

const address = { apiKey: "x", baseURL: "http://gateway.test/v1", fetch: failing };
const ask = { model: "public", input: "hi", stream: true } as const;
const told = { message: lost.message, code: "upstream_error", type: "api_error" };

describe("a responses stream that fails", () => {
  it.each([
    ["7", () => new OpenAI(address).responses.create(ask)],
    ["6", () => new OpenAIV6(address).responses.create(ask)],
  ])(
    "a responses stream that fails is an error with its code in version %s of the SDK",
    async (_version, open) => {
      const seen: unknown[] = [];
      const read = async (): Promise<void> => {
        for await (const each of await open()) seen.push(each);
      };
      await expect(read()).rejects.toMatchObject({ code: told.code, type: told.type, error: told });
      expect(seen).toMatchObject([{ response: { model: "public" } }, {}, {}, { delta: "hel" }]);
    },
  );

  it.each([
    ["7", () => new OpenAI(address).responses.stream(ask).finalResponse()],
    ["6", () => new OpenAIV6(address).responses.stream(ask).finalResponse()],
  ])(
    "a responses stream that fails raises an error in the stream helper of version %s",
    async (_version, open) => {
      await expect(open()).rejects.toMatchObject({ code: told.code });
    },
  );

  it("a responses stream that fails is one error with its message in the AI SDK", async () => {
    const model = createOpenAI(address).responses("public");
    const result = streamText({ model, prompt: "hi", onError: () => {} });
    const errors: unknown[] = [];
    for await (const part of result.fullStream) if (part.type === "error") errors.push(part.error);
    expect(errors).toHaveLength(1);
    expect(JSON.stringify(errors[0])).toContain(lost.message);
    expect(JSON.stringify(errors[0])).not.toContain("TypeValidation");
  });
});
