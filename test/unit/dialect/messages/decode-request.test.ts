import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { ReasoningSealSchema, Role } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { decodeMessagesRequest } from "../../../../src/dialect/messages/decode-request.ts";
import { messagesErrorBody } from "../../../../src/dialect/messages/errors.ts";
import { wrapSeal } from "../../../../src/dialect/turns/seal.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

const messages: unknown[] = [{ role: "user", content: "hi" }];

function decode(body: object) {
  const bytes = Buffer.from(JSON.stringify({ model: "m", max_tokens: 9, messages, ...body }));
  return decodeMessagesRequest(bytes, { platformAliases: false });
}

function refusal(body: object): GatewayError {
  try {
    decode(body);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was accepted");
}

describe("R-TXT-2: a request of messages", () => {
  it("a request of messages keeps what the contract has no field for, under its name", () => {
    const { extras } = decode({
      cache_control: { type: "ephemeral" },
      context_management: { edits: [] },
      metadata: { user_id: "u", team: "t" },
      thinking: { type: "between_tools" },
      top_k: null,
    });
    expect(extras.map(({ name, json }) => [name, json])).toEqual([
      ["thinking", '{"type":"between_tools"}'],
      ["metadata.team", '"t"'],
      ["cache_control", '{"type":"ephemeral"}'],
      ["context_management", '{"edits":[]}'],
    ]);
  });

  it("a request of messages has its system text first, and later ones in their place", () => {
    const turns = decode({
      system: "s",
      messages: [...messages, { role: "system", content: "later" }],
    }).conversation?.turns;
    expect(turns?.map(({ role }) => role)).toEqual([Role.SYSTEM, Role.USER, Role.SYSTEM]);
  });

  it("a request of messages takes what its SDK sends back of a reply without leftovers", () => {
    const content = [
      { type: "text", text: "t", citations: null },
      { type: "tool_use", id: "a", name: "f", input: { x: 1 }, caller: { type: "direct" } },
    ];
    const turns = decode({ messages: [...messages, { role: "assistant", content }] }).conversation
      ?.turns;
    expect(turns?.[1]?.parts.flatMap(({ extras }) => extras)).toEqual([]);
    expect(turns?.[1]?.parts[1]?.kind).toMatchObject({ value: { id: "a", input: '{"x":1}' } });
  });
});

describe("R-TXT-3: wrapped reasoning opens into what it was", () => {
  const seal = create(ReasoningSealSchema, { dialect: Dialect.RESPONSES, data: "enc" });
  const reasoningOf = (block: object) =>
    decode({ messages: [...messages, { role: "assistant", content: [block] }] }).conversation
      ?.turns[1]?.parts[0]?.kind.value;

  it("wrapped reasoning in a thinking block opens into what it was", () => {
    const signature = wrapSeal(seal, { itemId: "rs_1", summaries: ["a", "b"] });
    expect(reasoningOf({ type: "thinking", thinking: "a\n\nb", signature })).toMatchObject({
      text: "",
      summaries: ["a", "b"],
      itemId: "rs_1",
      seal,
    });
  });

  it("wrapped reasoning in a redacted block opens into what it was", () => {
    const data = wrapSeal(seal, { itemId: "rs_1" });
    const block = { type: "redacted_thinking", data };
    expect(reasoningOf(block)).toMatchObject({ itemId: "rs_1", seal });
  });

  it("the vendor's own reasoning stays as it is", () => {
    const block = { type: "thinking", thinking: "hm", signature: "sig" };
    expect(reasoningOf(block)).toMatchObject({
      text: "hm",
      seal: { dialect: Dialect.MESSAGES, signature: "sig" },
    });
  });
});

describe("R-ERR-1: a request that cannot be read or served", () => {
  it("makes the SDK continue without a thread, in the words that it knows", () => {
    const error = refusal({ thread: { type: "create" } });
    expect(messagesErrorBody(error, "")).toMatchObject({
      error: {
        type: "invalid_request_error",
        details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
      },
    });
  });

  it.each([
    [{ messages: [] }, "messages"],
    [{ messages: [{ role: "tool", content: "x" }] }, "messages[0].role"],
    [{ messages: [{ role: "user", content: [{ text: "x" }] }] }, "messages[0].content[0].type"],
    [{ max_tokens: "9" }, "max_tokens"],
    [{ temperature: 1.1 }, "temperature"],
    [{ tools: [{ name: "f" }] }, "tools[0].input_schema"],
    [{ tool_choice: { type: "tool" } }, "tool_choice.name"],
    [{ thinking: { type: "enabled" } }, "thinking.budget_tokens"],
    [{ output_config: { format: { type: "xml" } } }, "output_config.format.type"],
    [{ safeguards: {} }, "safeguards"],
    [{ mcp_servers: [{}] }, "mcp_servers"],
  ])("a request that cannot be served names the member at fault: %j", (body, param) => {
    expect(refusal(body)).toMatchObject({ status: 400, param });
  });
});
