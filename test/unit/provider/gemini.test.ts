/** Gemini's codec and vendor together, against a simulation that refuses what Gemini refuses. */
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Conversation,
  type Part,
  PartSchema,
  Role,
  ToolResultSchema,
  TurnSchema,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Generation,
  GenerationSchema,
  ReasoningMode,
  type Reply,
  StopReason,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { gemini as codec } from "../../../src/dialect/gemini/dialect.ts";
import { vendorKinds } from "../../../src/provider/index.ts";
import type { Vendor } from "../../../src/provider/vendor.ts";
import type { VendorReply } from "../../../src/provider/reply.ts";
import { strictGemini } from "../../support/upstream/gemini-strict.ts";
import { greeting, thoughts, tokens } from "../../support/upstream/scenario.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { text, type TurnInit, user } from "../dialect/gemini/generation.ts";
import { gathered } from "./gathered.ts";
import { vendorCall, vendorConfig } from "./listener.ts";

let upstream: Upstream;
let vendor: Vendor;

beforeAll(async () => {
  upstream = await startUpstream({ style: strictGemini() });
  vendor = made(upstream.secret);
});
beforeEach(() => upstream.clear());
afterAll(async () => {
  await vendor?.close();
  await upstream?.close();
  expect(upstream.violations).toEqual([]);
});

function made(apiKey: string): Vendor {
  const config = vendorConfig({ kind: "gemini", baseUrl: upstream.origin, apiKey });
  const kind = vendorKinds["gemini"];
  if (kind === undefined) throw new Error("no kind gemini");
  return kind.create(config);
}

const weather = {
  kind: {
    case: "function",
    value: {
      name: "get_weather",
      parametersJson: JSON.stringify({
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
        additionalProperties: false,
      }),
    },
  } as const,
};

function generation(turns: TurnInit[]): Generation {
  const reasoning = { mode: ReasoningMode.ADAPTIVE };
  return create(GenerationSchema, { conversation: { turns, tools: [weather] }, reasoning });
}

async function send(asked: Generation, stream: boolean, by = vendor): Promise<VendorReply> {
  const target = { model: "vendor-model", stream, maxOutputTokens: 99, sourceDialect: undefined };
  const { body, headers } = codec.encodeRequest(asked, target);
  const call = { dialect: Dialect.GEMINI, model: target.model, body: [body], headers, stream };
  return by.exchange(vendorCall(call));
}

/** Returns the vendor's reply in either form. */
async function ask(asked: Generation, stream: boolean): Promise<Reply> {
  const reply = await send(asked, stream);
  expect(reply.status).toBe(200);
  if (!stream) return codec.decodeReply(await reply.body.whole(1_000_000));
  return gathered(codec.decodeStream(), reply.body);
}

function conversationOf(asked: Generation): Conversation {
  if (asked.conversation === undefined) throw new Error("no conversation");
  return asked.conversation;
}

const textsOf = ({ parts }: Reply): string =>
  parts.map(({ kind }) => (kind.case === "text" ? kind.value.text : "")).join("");

function resultOf({ kind }: Part): Part[] {
  if (kind.case !== "toolCall") return [];
  const value = create(ToolResultSchema, {
    toolCallId: kind.value.id,
    parts: [text(`sunny for ${kind.value.input}`)],
  });
  return [create(PartSchema, { kind: { case: "toolResult", value } })];
}

describe.each([
  ["whole", false],
  ["streamed", true],
])("R-TXT-1 a strict Gemini, %s", (_form, stream) => {
  it("is greeted and answers, with thoughts and usage", async () => {
    const reply = await ask(generation([user(text("think, then greet"))]), stream);
    expect(textsOf(reply)).toBe(greeting.join(""));
    expect(reply.parts[0]?.kind).toMatchObject({ value: { text: thoughts.join("") } });
    expect(reply.stopReason).toBe(StopReason.END);
    expect(reply.usage).toMatchObject({
      inputTokens: tokens.input,
      cachedInputTokens: tokens.cached,
      outputTokens: tokens.output,
      reasoningTokens: tokens.reasoning,
    });
  });

  it("R-TXT-3 calls two tools and takes its reasoning back with their results", async () => {
    const asked = generation([user(text("think, then call two tools"))]);
    const called = await ask(asked, stream);
    expect(called.stopReason).toBe(StopReason.TOOL_CALLS);
    const answers = called.parts.flatMap(resultOf);
    expect(answers).toHaveLength(2);
    const { turns } = conversationOf(asked);
    turns.push(create(TurnSchema, { role: Role.ASSISTANT, parts: called.parts }));
    // As in chat completions: each result in a separate turn.
    for (const part of answers) turns.push(create(TurnSchema, { role: Role.USER, parts: [part] }));
    const reply = await ask(asked, stream);
    expect(textsOf(reply)).toBe(
      'Tools said: sunny for {"city":"Bern"} | sunny for {"city":"Paris"}',
    );
    turns.push(create(TurnSchema, { role: Role.ASSISTANT, parts: reply.parts }));
    turns.push(create(TurnSchema, user(text("count reasoning"))));
    expect(textsOf(await ask(asked, stream))).toBe("1");
  });

  it("a strict Gemini that refuses or stops short reports it in its reply", async () => {
    const refused = await ask(generation([user(text("refuse"))]), stream);
    expect(refused.stopReason).toBe(StopReason.CONTENT_FILTER);
    const long = await ask(generation([user(text("long"))]), stream);
    expect(long.stopReason).toBe(StopReason.LENGTH);
  });

  it("reports a wrong key with a status that is about the request", async () => {
    const stranger = made("wrong");
    const reply = await send(generation([user(text("Hi"))]), stream, stranger);
    const body = await reply.body.whole(10_000);
    expect(reply.status).toBe(400);
    expect(stranger.faultOf?.(400, body)).toBe("credential");
    expect(codec.decodeError(body)).toMatchObject({ code: "INVALID_ARGUMENT" });
    await stranger.close();
  });

  it("a strict Gemini that is busy is read as busy, not as the operator's trouble", async () => {
    const reply = await send(generation([user(text("status 429"))]), stream);
    expect(reply.status).toBe(429);
    const body = await reply.body.whole(10_000);
    expect(vendor.faultOf?.(429, body)).toBeUndefined();
    expect(codec.decodeError(body)).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  });
});

describe("R-ERR-6 a stream that fails", () => {
  it("a stream that fails by an error event ends with it", async () => {
    const asked = generation([user(text("error midstream"))]);
    await expect(ask(asked, true)).rejects.toThrow("The server had an error");
  });

  it("a stream that fails by a cut has no end", async () => {
    await expect(ask(generation([user(text("cut"))]), true)).rejects.toThrow();
  });
});
