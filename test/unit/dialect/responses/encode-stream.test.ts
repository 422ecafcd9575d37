import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import OpenAI from "openai";
import OpenAIV6 from "openai-v6";
import { describe, expect, it } from "vitest";
import { StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { openSeal } from "../../../../src/dialect/turns/seal.ts";
import { ResponsesStreamEncoder } from "../../../../src/dialect/responses/encode-stream.ts";
import { plain, replies } from "./replies.ts";
import {
  begin,
  decode,
  delta,
  end,
  eventsOf,
  replyOptions,
  serve,
  start,
  streamOf,
} from "./support.ts";

const request = {
  model: "m",
  instructions: "be brief",
  input: "hi",
  metadata: { a: "b" },
  stream: true,
};
const options = () => replyOptions(decode(request));

describe("a streamed response is followed by the strict state machine of openai 7 (facts 0.4)", () => {
  for (const [name, events] of Object.entries(replies)) {
    it(name, async () => {
      const stream = streamOf(events, options());
      const parsed = eventsOf(stream);
      await using server = await serve(stream);
      const client = new OpenAI({ apiKey: "k", baseURL: server.url, maxRetries: 0 });
      const response = await client.responses.stream({ model: "m", input: "hi" }).finalResponse();
      const last = parsed.at(-1)?.["response"] as { output: unknown[] };
      expect(response.output).toMatchObject(last.output as object[]);
      expect(response.id).toBe("resp_0123456789abcdef0123456789abcdef");
      // The sum of the deltas equals the final items.
      const done = parsed.filter(({ type }) => type === "response.output_item.done");
      const byPlace = done.toSorted(
        (a, b) => Number(a["output_index"]) - Number(b["output_index"]),
      );
      expect(byPlace.map(({ item }) => item)).toEqual(last.output);
    });
  }
});

describe("a streamed response repeats the vendor's reply", () => {
  const responseOf = (name: string) => {
    const events = replies[name] ?? [];
    const last = eventsOf(streamOf(events, options())).at(-1);
    return last?.["response"] as Record<string, unknown> & {
      output: Array<Record<string, unknown>>;
    };
  };

  it("repeats the request's settings, and the usage with both details", () => {
    expect(responseOf("text")).toMatchObject({
      status: "completed",
      created_at: 1_690_000_000,
      instructions: "be brief",
      metadata: { a: "b" },
      model: "public-model",
      store: true,
      tool_choice: "auto",
      tools: [],
      usage: {
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 4 },
        total_tokens: 29,
      },
    });
  });

  it("carries a foreign seal, with the text it seals, in encrypted_content (R-TXT-3)", () => {
    const [item] = responseOf("reasoning with a foreign seal, text and calls").output;
    expect(item).toMatchObject({ summary: [{ type: "summary_text", text: "let me think" }] });
    const opened = openSeal(String(item?.["encrypted_content"]));
    expect(opened).toMatchObject({ text: "let me think", seal: { signature: "sig==" } });
  });

  it("gives a call without input an empty object, and each call a unique id", () => {
    const { output } = responseOf("reasoning with a foreign seal, text and calls");
    expect(output.map(({ type }) => type)).toEqual([
      "reasoning",
      "message",
      "function_call",
      "function_call",
      "custom_tool_call",
    ]);
    expect(output[3]).toMatchObject({ arguments: "{}", call_id: "toolu_2" });
    const ids = responseOf("calls with the same id").output.map((item) => item["call_id"]);
    expect(new Set(ids).size).toBe(3);
  });

  it("joins texts that follow each other in one message", () => {
    const { output } = responseOf("two texts in a row");
    expect(output).toHaveLength(1);
    expect(output[0]).toMatchObject({ content: [{ text: "one" }, { text: "two" }] });
  });

  it("says that a reply cut by the token limit is incomplete, and so its last item", () => {
    expect(responseOf("parts that nobody ends")).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{}, { status: "incomplete", arguments: '{"a' }],
    });
  });

  it("shows a vendor's explanation of a refusal as a refusal", () => {
    const events = [start(), end({ stopReason: StopReason.REFUSAL, stopDetail: "not this" })];
    const last = eventsOf(streamOf(events, options())).at(-1)?.["response"];
    expect(last).toMatchObject({
      status: "completed",
      output: [{ content: [{ type: "refusal", refusal: "not this" }] }],
    });
  });
});

describe("other clients read the same stream", () => {
  const all = replies["reasoning with a foreign seal, text and calls"] ?? [];

  it("openai 6 reads the same stream", async () => {
    await using server = await serve(streamOf(all, options()));
    const client = new OpenAIV6({ apiKey: "k", baseURL: server.url, maxRetries: 0 });
    const response = await client.responses.stream({ model: "m", input: "hi" }).finalResponse();
    expect(response.output_text).toBe("I call");
    expect(response.output).toHaveLength(5);
  });

  it("@ai-sdk/openai reads the same stream", async () => {
    await using server = await serve(streamOf(all, options()));
    const provider = createOpenAI({ apiKey: "k", baseURL: server.url });
    const result = streamText({ model: provider.responses("m"), prompt: "hi", maxRetries: 0 });
    expect(await result.text).toBe("I call");
    expect(await result.reasoningText).toBe("let me think");
    const calls = await result.toolCalls;
    expect(calls.map(({ toolCallId }) => toolCallId).slice(0, 2)).toEqual(["toolu_1", "toolu_2"]);
    expect(await result.usage).toMatchObject({ inputTokens: 20, outputTokens: 9 });
  });
});

describe("a failure in the middle of a stream is an error to clients (R-ERR-6)", () => {
  const failed = () => {
    const encoder = new ResponsesStreamEncoder(options());
    const begun = [start(), begin(0, plain), delta(0, { case: "text", value: "a" })];
    const error = new GatewayError(ErrorCode.UPSTREAM_ERROR, "The vendor failed");
    return begun.map((each) => encoder.push(each)).join("") + encoder.fail(error);
  };

  const failure = {
    code: "upstream_error",
    type: "api_error",
    message: expect.stringContaining("The vendor failed"),
  };

  it("openai 7 reports a failure in the middle of a stream as an error", async () => {
    await using server = await serve(failed());
    const client = new OpenAI({ apiKey: "k", baseURL: server.url, maxRetries: 0 });
    const stream = await client.responses.create({ model: "m", input: "hi", stream: true });
    await expect(drain(stream)).rejects.toMatchObject(failure);
  });

  it("openai 6 reports a failure in the middle of a stream as an error", async () => {
    await using server = await serve(failed());
    const client = new OpenAIV6({ apiKey: "k", baseURL: server.url, maxRetries: 0 });
    const stream = await client.responses.create({ model: "m", input: "hi", stream: true });
    await expect(drain(stream)).rejects.toMatchObject(failure);
  });

  it("@ai-sdk/openai reports a failure in the middle of a stream as an error", async () => {
    await using server = await serve(failed());
    const provider = createOpenAI({ apiKey: "k", baseURL: server.url });
    const errors: unknown[] = [];
    const result = streamText({
      model: provider.responses("m"),
      prompt: "hi",
      maxRetries: 0,
      onError: ({ error }) => {
        errors.push(error);
      },
    });
    await result.consumeStream();
    expect(JSON.stringify(errors)).toContain("The vendor failed");
    expect(JSON.stringify(errors)).not.toContain('sequence_number","invalid');
  });
});

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}
