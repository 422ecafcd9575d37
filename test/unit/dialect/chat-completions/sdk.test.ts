/** The encoders' output, read by common clients. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { create } from "@bufbuild/protobuf";
import { streamText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type GenerateEvent,
  GenerateEventSchema,
  ReplySchema,
  StopReason,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { replyOptions } from "./support.ts";

let server: Server;
let baseURL = "";
let answer: { type: string; body: string | Buffer };

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": answer.type }).end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const event = (kind: string, value: unknown): GenerateEvent =>
  create(GenerateEventSchema, { kind: { case: kind, value } } as never);
const part = (index: number, kind: string, value: object, deltas: [string, string][]) => [
  event("partStart", { index, part: { kind: { case: kind, value } } }),
  ...deltas.map(([name, text]) =>
    event("partDelta", { index, delta: { case: name, value: text } }),
  ),
  event("partEnd", { index }),
];

const spoken = [
  event("start", { id: "msg_1" }),
  ...part(0, "reasoning", {}, [["text", "hm"]]),
  ...part(1, "text", {}, [
    ["text", "Hello"],
    ["text", ', "world"\n'],
  ]),
  ...part(2, "toolCall", { id: "a", name: "f", type: 1 }, [
    ["input", '{"a"'],
    ["input", ":1}"],
  ]),
  ...part(3, "toolCall", { id: "b", name: "g", type: 1 }, []),
  event("end", {
    stopReason: StopReason.TOOL_CALLS,
    usage: { inputTokens: 3, outputTokens: 4, reasoningTokens: 1 },
  }),
];

function answerStream(events: readonly GenerateEvent[], tail = ""): void {
  const encoder = chatCompletions.encodeStream(replyOptions());
  const body = events.map((each) => encoder.push(each)).join("");
  answer = { type: "text/event-stream", body: body + tail };
}

const messages = [{ role: "user" as const, content: "hi" }];

describe("R-TXT-1: the SDKs read what is written", () => {
  const client = () => new OpenAI({ baseURL, apiKey: "x", maxRetries: 0 });

  it("openai 7 reads a stream by its strict helper", async () => {
    answerStream(spoken);
    const stream = client().chat.completions.stream({
      model: "public",
      messages,
      stream_options: { include_usage: true },
    });
    const completion = await stream.finalChatCompletion();
    const [choice] = completion.choices;
    expect(choice?.message).toMatchObject({
      role: "assistant",
      content: 'Hello, "world"\n',
      tool_calls: [
        { id: "a", function: { name: "f", arguments: '{"a":1}' } },
        { id: "b", function: { name: "g", arguments: "{}" } },
      ],
    });
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(completion.usage?.total_tokens).toBe(7);
    expect(completion.model).toBe("public");
  });

  it("openai 7, a stream that fails", async () => {
    const error = new GatewayError(ErrorCode.UPSTREAM_ERROR, "cut");
    const tail = chatCompletions.encodeStream(replyOptions()).fail(error);
    answerStream(spoken.slice(0, 5), tail);
    const stream = await client().chat.completions.create({
      model: "public",
      messages,
      stream: true,
    });
    const read = async () => {
      for await (const chunk of stream) expect(chunk.id).toMatch(/^chatcmpl-/);
    };
    await expect(read()).rejects.toMatchObject({ code: "upstream_error" });
  });

  it("openai 7 reads a whole reply", async () => {
    const reply = create(ReplySchema, {
      parts: [{ kind: { case: "text", value: { text: "hi" } } }],
      stopReason: StopReason.LENGTH,
      usage: { inputTokens: 1, outputTokens: 2 },
    });
    answer = {
      type: "application/json",
      body: chatCompletions.encodeReply(reply, replyOptions()),
    };
    const completion = await client().chat.completions.create({ model: "public", messages });
    expect(completion.choices[0]).toMatchObject({
      message: { content: "hi" },
      finish_reason: "length",
    });
  });

  it("@ai-sdk/openai-compatible reads a reply with its reasoning", async () => {
    answerStream(spoken);
    const provider = createOpenAICompatible({
      name: "uas",
      baseURL,
      apiKey: "x",
      includeUsage: true,
    });
    const result = streamText({ model: provider("public"), messages });
    expect(await result.text).toBe('Hello, "world"\n');
    expect(await result.reasoningText).toBe("hm");
    expect((await result.usage).totalTokens).toBe(7);
    expect(await result.finishReason).toBe("tool-calls");
  });
});
