/** Bodies as clients of each style send them, and what bad clients make of them. */
import * as fc from "fast-check";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const parameters: Json = {
  type: "object",
  properties: { city: { type: "string" }, model: { type: ["string", "null"] } },
  required: ["city"],
};

const chat: Json = {
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", name: "ada", content: [{ type: "text", text: "Weather?" }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "call_1",
          type: "function",
          function: { name: "weather", arguments: '{"city":"Ulm"}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "rain" },
    {
      role: "user",
      content: [
        { type: "text", text: "And this?" },
        { type: "image_url", image_url: { url: pixel, detail: "low" } },
      ],
    },
  ],
  tools: [{ type: "function", function: { name: "weather", description: "Tells it", parameters } }],
  tool_choice: "auto",
  parallel_tool_calls: false,
  response_format: { type: "json_schema", json_schema: { name: "reply", schema: parameters } },
  stop: ["END"],
  temperature: 0.5,
  top_p: 0.9,
  seed: 7,
  logit_bias: { "50256": -100 },
  reasoning_effort: "low",
  max_completion_tokens: 64,
  stream_options: { include_usage: true },
  metadata: { a: "b" },
  n: 1,
};

const messages: Json = {
  max_tokens: 2048,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: "Weather?" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2lnbmVk" },
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Ulm" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "toolu_1",
          is_error: false,
          content: [{ type: "text", text: "rain" }],
        },
        {
          type: "image",
          source: { type: "base64", media_type: "image/png", data: pixel.slice(22) },
        },
        {
          type: "document",
          title: "a",
          source: { type: "text", media_type: "text/plain", data: "b" },
        },
      ],
    },
  ],
  tools: [{ name: "weather", description: "Tells it", input_schema: parameters }],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  thinking: { type: "enabled", budget_tokens: 1024, display: "omitted" },
  output_config: { effort: "low", format: { type: "json_schema", schema: parameters } },
  stop_sequences: ["END"],
  metadata: { user_id: "u1" },
  service_tier: "auto",
};

const responses: Json = {
  instructions: "Be brief.",
  input: [
    { role: "user", content: "Weather?" },
    {
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text: "Hm." }],
      encrypted_content: "uas1.eyJkIjo0LCJzIjoiYWJjIn0",
    },
    {
      type: "function_call",
      id: "fc_1",
      call_id: "call_1",
      name: "weather",
      arguments: '{"city":"Ulm"}',
    },
    { type: "function_call_output", call_id: "call_1", output: "rain" },
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Rain.", annotations: [], logprobs: [] }],
    },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "And this?" },
        { type: "input_image", image_url: pixel, detail: "low" },
      ],
    },
  ],
  tools: [
    { type: "function", name: "weather", description: "Tells it", parameters, strict: false },
    { type: "custom", name: "patch", format: { type: "text" } },
  ],
  tool_choice: { type: "function", name: "weather" },
  parallel_tool_calls: true,
  text: { format: { type: "json_schema", name: "reply", schema: parameters }, verbosity: "low" },
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  max_output_tokens: 64,
  metadata: { a: "b" },
  store: false,
  truncation: "disabled",
  previous_response_id: null,
  client_metadata: { turn: 1 },
};

/** Bodies by the path that they are sent to; without `model` and `stream`. */
export const realBodies: Readonly<Record<string, Json>> = {
  "/v1/chat/completions": chat,
  "/v1/messages": messages,
  "/v1/responses": responses,
};

const oddNames = [
  "__proto__",
  "constructor",
  "x\r\ninjected: yes",
  "süß\u0000",
  "\ud83d\ude00",
  "y".repeat(3000),
  "type",
  "id",
  "content",
];
const oddValues: readonly Json[] = [
  null,
  true,
  0,
  -1,
  1e308,
  2 ** 53,
  "",
  "a\r\nb: c",
  "\u0000\u2028",
  "\ud800",
  "uas1.",
  "uas1.bnVsbA",
  "data:image/png;base64,",
  "data:,",
  [],
  {},
  [[]],
  [null],
  [{}],
  ["x"],
  { type: "text" },
  { type: "constructor" },
  { "": { "": [] } },
];

/** One change of a body: where, counted through all places, and what. */
interface Change {
  readonly at: number;
  readonly kind: "replace" | "remove" | "add" | "repeat" | "wrap";
  readonly name: string;
  readonly value: Json;
}

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(10_000),
  kind: fc.constantFrom("replace", "replace", "replace", "remove", "add", "repeat", "wrap"),
  name: fc.oneof(fc.constantFrom(...oddNames), fc.string({ unit: "binary" })),
  value: fc.oneof(
    fc.constantFrom(...oddValues),
    fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>,
  ),
});

/** A request that a real one was changed into. */
export const mutated: fc.Arbitrary<{
  path: string;
  body: string;
  headers: Record<string, string>;
}> = fc
  .record({
    path: fc.constantFrom(...Object.keys(realBodies)),
    vendor: fc.constantFrom("chat", "responses", "messages", "gemini"),
    stream: fc.boolean(),
    strict: fc.boolean(),
    changes: fc.array(change, { maxLength: 4 }),
    cut: fc.option(fc.nat(5_000), { freq: 12 }),
  })
  .map(({ path, vendor, stream, strict, changes, cut }) => {
    let body: Json = realBodies[path] ?? {};
    for (const each of changes) body = apply(body, each);
    const named = { ...(body as object), model: `m-${vendor}`, stream };
    const text = JSON.stringify(Array.isArray(body) ? body : named);
    const headers: Record<string, string> = strict ? { "x-uas-strict": "true" } : {};
    return { path, body: cut === null ? text : text.slice(0, cut), headers };
  });

function apply(body: Json, each: Change): Json {
  const places = count(body);
  const left = { at: each.at % places };
  return walk(body, left, each);
}

function count(value: Json): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, inner) => sum + count(inner), 1);
}

/** The value with the place that is `left.at` places further on changed. */
function walk(value: Json, left: { at: number }, each: Change): Json {
  if (left.at-- === 0) return changed(value, each);
  if (Array.isArray(value)) {
    return value.flatMap((item: Json) => {
      const isHere = left.at === 0;
      const inner = walk(item, left, each);
      if (isHere && each.kind === "remove") return [];
      return isHere && each.kind === "repeat" ? [inner, inner] : [inner];
    });
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, item]): Array<[string, Json]> => {
    const isHere = left.at === 0;
    const inner = walk(item, left, each);
    return isHere && each.kind === "remove" ? [] : [[name, inner]];
  });
  return Object.fromEntries(entries);
}

function changed(value: Json, { kind, name, value: odd }: Change): Json {
  if (kind === "replace") return odd;
  if (kind === "wrap") return [value];
  if (kind !== "add" || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return [...value, odd] as Json[];
  return Object.fromEntries([...Object.entries(value), [name, odd]]);
}
