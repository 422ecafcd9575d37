import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { decodeMessagesRequest } from "../../../../src/dialect/messages/decode-request.ts";
import { encodeMessagesRequest } from "../../../../src/dialect/messages/encode-request.ts";

type Json = Record<string, unknown>;

/** Sends a request in the vendor's own style through the contract. */
function throughContract(body: Json): unknown {
  const bytes = Buffer.from(JSON.stringify(body));
  const generation = decodeMessagesRequest(bytes, { platformAliases: false });
  const { body: sent, dropped } = encodeMessagesRequest(generation, {
    model: generation.model,
    stream: generation.stream,
    maxOutputTokens: 1000,
    sourceDialect: Dialect.MESSAGES,
  });
  expect(dropped).toEqual([]);
  return JSON.parse(sent.toString());
}

const text = fc.string({ unit: "grapheme", minLength: 1 });
const id = fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/);
const cacheControl = fc.constantFrom({ type: "ephemeral" }, { type: "ephemeral", ttl: "1h" });
const plainObject = fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.jsonValue({ maxDepth: 2 }));

function record(required: Record<string, fc.Arbitrary<unknown>>, optional = {}) {
  return fc.record(
    { ...required, ...optional },
    { requiredKeys: Object.keys(required) },
  ) as fc.Arbitrary<Json>;
}

const textBlock = record({ type: fc.constant("text"), text }, { cache_control: cacheControl });
const base64 = fc.base64String({ minLength: 4 });
const anyUrl = fc.webUrl();
const imageBlock = record(
  {
    type: fc.constant("image"),
    source: fc.oneof(
      record({
        type: fc.constant("base64"),
        media_type: fc.constantFrom("image/png", "image/webp"),
        data: base64,
      }),
      record({ type: fc.constant("url"), url: anyUrl }),
      record({ type: fc.constant("file"), file_id: id }),
    ),
  },
  { cache_control: cacheControl, transformations: fc.constant({ oversized_image: "error" }) },
);
const documentBlock = record(
  {
    type: fc.constant("document"),
    source: fc.oneof(
      record({
        type: fc.constant("base64"),
        media_type: fc.constant("application/pdf"),
        data: base64,
      }),
      record({
        type: fc.constant("text"),
        media_type: fc.constant("text/plain"),
        data: text,
      }),
      record({ type: fc.constant("url"), url: anyUrl }),
      record({ type: fc.constant("file"), file_id: id }),
    ),
  },
  { title: text, context: text, citations: fc.constant({ enabled: true }) },
);
const opaqueBlock = record({
  type: fc.constantFrom("search_result", "container_upload", "web_search_tool_result"),
  anything: fc.jsonValue({ maxDepth: 2 }),
});
const resultContent = fc.oneof(
  text,
  fc.array(fc.oneof(textBlock, imageBlock, opaqueBlock), { minLength: 1, maxLength: 3 }),
);
const thinkingBlock = fc.oneof(
  record({ type: fc.constant("thinking"), thinking: text, signature: id }),
  record({ type: fc.constant("redacted_thinking"), data: id }),
);

/** A call and what the tool answered: an assistant message and a user message. */
const toolRound = fc
  .record({
    ids: fc.uniqueArray(id, { minLength: 1, maxLength: 3 }),
    name: fc.stringMatching(/^[a-zA-Z0-9_-]{1,128}$/),
    input: plainObject,
    content: resultContent,
    isError: fc.boolean(),
    thinking: thinkingBlock,
    rest: fc.array(textBlock, { maxLength: 2 }),
  })
  .map(({ ids, name, input, content, isError, thinking, rest }) => {
    const calls = ids.map((each) => ({ type: "tool_use", id: each, name, input }));
    const results = ids.map((each) => ({
      type: "tool_result",
      tool_use_id: each,
      content,
      ...(isError && { is_error: true }),
    }));
    return [
      { role: "assistant", content: [thinking, ...calls] },
      { role: "user", content: [...results, ...rest] },
    ];
  });
const content = fc.oneof(
  text,
  fc.array(fc.oneof(textBlock, imageBlock, documentBlock, opaqueBlock), {
    minLength: 1,
    maxLength: 4,
  }),
);
const rounds = fc
  .array(fc.oneof(toolRound, fc.constant([{ role: "system", content: "Be brief." }])), {
    maxLength: 3,
  })
  // Messages of one role that follow each other become one: those are tested elsewhere.
  .map((list) => list.filter((round, i) => round[0]?.role !== list[i - 1]?.at(-1)?.role).flat());

const tool = record(
  {
    name: fc.stringMatching(/^[a-zA-Z0-9_-]{1,128}$/),
    input_schema: plainObject.map((schema) => ({ ...schema, type: "object" })),
  },
  {
    description: text,
    strict: fc.boolean(),
    cache_control: cacheControl,
    defer_loading: fc.boolean(),
  },
);
const serverTool = fc.constantFrom(
  { type: "web_search_20250305", name: "web_search", max_uses: 3 },
  { type: "bash_20250124", name: "bash" },
);
const single = { disable_parallel_tool_use: fc.constant(true) };
const body = record(
  {
    model: text,
    max_tokens: fc.integer({ min: 1, max: 100_000 }),
    messages: fc
      .record({ first: content, rest: rounds })
      .map(({ first, rest }) => [{ role: "user", content: first }, ...rest]),
  },
  {
    system: fc.oneof(text, fc.array(textBlock, { minLength: 1, maxLength: 3 })),
    tools: fc.array(fc.oneof(tool, serverTool), { minLength: 1, maxLength: 3 }),
    tool_choice: fc.oneof(
      record({ type: fc.constantFrom("auto", "any") }, single),
      record({ type: fc.constant("tool"), name: id }, single),
      fc.constant({ type: "none" }),
    ),
    thinking: fc.oneof(
      record(
        { type: fc.constant("enabled"), budget_tokens: fc.integer({ min: 1024, max: 9_000 }) },
        { display: fc.constantFrom("summarized", "omitted") },
      ),
      record({ type: fc.constant("adaptive") }, { display: fc.constant("omitted") }),
      fc.constantFrom({ type: "disabled" }, { type: "between_tools" }),
    ),
    output_config: record(
      {
        effort: fc.constantFrom("low", "medium", "high", "xhigh", "max"),
        format: plainObject.map((schema) => ({ type: "json_schema", schema })),
      },
      { task_budget: plainObject },
    ),
    metadata: record({ user_id: text }, { other: plainObject }),
    service_tier: fc.constantFrom("auto", "standard_only"),
    stop_sequences: fc.array(text, { minLength: 1 }),
    stream: fc.constant(true),
    temperature: fc.constantFrom(0, 0.5, 1),
    top_p: fc.constantFrom(0.1, 1),
    top_k: fc.integer({ min: 0, max: 500 }),
    cache_control: cacheControl,
    context_management: plainObject,
    container: text,
  },
);

describe("R-TXT-1, R-TXT-2: messages → contract → messages", () => {
  it("gives every request back as it was", () => {
    fc.assert(
      fc.property(body, (sent) => {
        // Minus zero is no JSON.
        expect(throughContract(sent)).toEqual(JSON.parse(JSON.stringify(sent)));
      }),
      { numRuns: 400 },
    );
  });

  it("merges what belongs together, and puts results first", () => {
    const messages = [
      { role: "user", content: "a" },
      { role: "user", content: [{ type: "text", text: "b" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "f", input: {} }] },
      { role: "system", content: "Be brief." },
      { role: "user", content: "so?" },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "1" }] },
    ];
    const sent = throughContract({ model: "m", max_tokens: 9, messages }) as Json;
    expect(sent["messages"]).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      messages[2],
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "1" },
          { type: "text", text: "so?" },
        ],
      },
      { role: "system", content: "Be brief." },
    ]);
  });
});
