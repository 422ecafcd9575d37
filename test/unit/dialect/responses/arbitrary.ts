/**
 * Request bodies of the responses style, of every kind that the gateway reads, and of kinds it does
 * not.
 */
import * as fc from "fast-check";

const word = fc.stringMatching(/^[a-z][a-z0-9_]{0,9}$/);
const words = fc.string({ maxLength: 12 });
const base64 = fc
  .uint8Array({ maxLength: 9 })
  .map((bytes) => Buffer.from(bytes).toString("base64"));

/** An object without the members that are absent. */
function record(
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<Record<string, unknown>> {
  const requiredKeys = Object.keys(required);
  return fc.record({ ...required, ...optional }, { requiredKeys });
}

const constant = (value: string) => fc.constant(value);
const unknown = { zz_unknown: fc.jsonValue({ maxDepth: 1 }).filter((value) => value !== null) };

const inputPart = fc.oneof(
  record({ type: constant("input_text"), text: words }, unknown),
  record({
    type: constant("input_image"),
    image_url: fc.oneof(
      constant("https://a.example/b.png"),
      base64.map((d) => `data:image/png;base64,${d}`),
    ),
    detail: fc.constantFrom("auto", "low", "high"),
  }),
  record({ type: constant("input_image"), file_id: constant("file-1"), detail: constant("auto") }),
  record({
    type: constant("input_file"),
    filename: constant("a.pdf"),
    file_data: base64.map((data) => `data:application/pdf;base64,${data}`),
  }),
  record({ type: constant("input_file"), file_url: constant("https://a.example/b.pdf") }),
  record({
    type: constant("input_audio"),
    input_audio: record({ data: base64.filter((data) => data !== ""), format: constant("wav") }),
  }),
  record({ type: constant("input_hologram"), light: fc.integer() }),
);

const annotation = record({
  type: constant("url_citation"),
  url: constant("https://a.example"),
  title: words,
  start_index: fc.nat(9),
  end_index: fc.nat(9),
});

const outputPart = fc.oneof(
  record({
    type: constant("output_text"),
    text: words,
    annotations: fc.array(annotation, { maxLength: 2 }),
  }),
  record({ type: constant("refusal"), refusal: words }),
);

const id = (prefix: string) => word.map((rest) => prefix + rest);
const callId = { call_id: id("call_") };
const output = fc.oneof(words, fc.array(inputPart, { maxLength: 3 }));

const item = fc.oneof(
  record(
    {
      type: constant("message"),
      role: fc.constantFrom("user", "system", "developer"),
      content: fc.oneof(words, fc.array(inputPart, { maxLength: 3 })),
    },
    unknown,
  ),
  record(
    {
      type: constant("message"),
      id: id("msg_"),
      role: constant("assistant"),
      status: fc.constantFrom("completed", "incomplete"),
      content: fc.array(outputPart, { maxLength: 3 }),
    },
    { phase: fc.constantFrom("commentary", "final_answer") },
  ),
  record({
    type: constant("function_call"),
    id: id("fc_"),
    ...callId,
    name: word,
    arguments: constant('{"a":1}'),
    status: fc.constantFrom("completed", "in_progress"),
  }),
  record(
    { type: constant("function_call"), ...callId, name: word, arguments: constant("{broken") },
    { namespace: word, ...unknown },
  ),
  record({ type: constant("custom_tool_call"), ...callId, name: word, input: words }),
  record({ type: constant("function_call_output"), ...callId, output }, unknown),
  record({ type: constant("custom_tool_call_output"), ...callId, output }),
  record(
    {
      type: constant("reasoning"),
      id: id("rs_"),
      summary: fc.array(record({ type: constant("summary_text"), text: words }), { maxLength: 2 }),
    },
    {
      encrypted_content: constant("gAAAA"),
      content: record({ type: constant("reasoning_text"), text: constant("raw") }).map((it) => [
        it,
      ]),
    },
  ),
  record({ type: constant("item_reference"), id: id("msg_") }),
  record({ type: constant("web_search_call"), id: id("ws_"), status: constant("completed") }),
  record({
    type: constant("computer_call_output"),
    ...callId,
    output: fc.jsonValue({ maxDepth: 2 }),
  }),
  record({ type: constant("not_invented_yet"), anything: fc.jsonValue({ maxDepth: 2 }) }),
);

const schema = fc.constant({ type: "object", properties: { a: { type: "string" } } });
const functionTool = record(
  { type: constant("function"), name: word, parameters: schema },
  {
    description: words.filter((text) => text !== ""),
    strict: fc.boolean(),
    defer_loading: fc.boolean(),
  },
);
const customTool = record(
  { type: constant("custom"), name: word },
  { format: fc.constant({ type: "grammar", syntax: "lark", definition: "x" }) },
);
const tool = fc.oneof(
  functionTool,
  customTool,
  record({ type: constant("web_search") }, { external_web_access: fc.boolean() }),
  record({
    type: constant("namespace"),
    name: word,
    description: words,
    tools: fc.array(fc.oneof(functionTool, customTool), { minLength: 1, maxLength: 2 }),
  }),
);

const toolChoice = fc.oneof(
  fc.constantFrom("auto", "none", "required"),
  record({ type: fc.constantFrom("function", "custom"), name: word }),
  record({ type: constant("web_search") }),
  record({
    type: constant("allowed_tools"),
    mode: fc.constantFrom("auto", "required"),
    tools: fc.array(record({ type: constant("function"), name: word }), {
      minLength: 1,
      maxLength: 2,
    }),
  }),
  fc.constant({ type: "allowed_tools", mode: "auto", tools: [{ type: "mcp", server_label: "x" }] }),
);

const format = fc.oneof(
  fc.constant({ type: "text" }),
  fc.constant({ type: "json_object" }),
  record({ type: constant("json_schema"), name: word, schema }, { strict: fc.boolean() }),
);

/** A body as the gateway writes it: nothing in it is said in two ways. */
export const canonicalBody: fc.Arbitrary<unknown> = record(
  { model: constant("vendor-model"), input: fc.array(item, { minLength: 1, maxLength: 5 }) },
  {
    instructions: words,
    tools: fc.uniqueArray(tool, {
      selector: (each) => String(each["name"]),
      minLength: 1,
      maxLength: 3,
    }),
    tool_choice: toolChoice,
    parallel_tool_calls: fc.boolean(),
    max_output_tokens: fc.integer({ min: 1, max: 9999 }),
    temperature: fc.constantFrom(0, 0.5, 2),
    top_p: fc.constantFrom(0, 1),
    reasoning: record(
      { effort: fc.constantFrom("none", "low", "max") },
      { summary: constant("auto"), context: word },
    ),
    include: fc.constantFrom(["reasoning.encrypted_content"], ["message.output_text.logprobs"]),
    text: record({ format }, { verbosity: constant("low"), ...unknown }),
    safety_identifier: word,
    service_tier: fc.constantFrom("auto", "flex"),
    prompt_cache_key: word,
    store: fc.boolean(),
    metadata: fc.dictionary(word, words, { maxKeys: 2 }),
    previous_response_id: id("resp_"),
    truncation: constant("auto"),
    ...unknown,
  },
)
  // As it is on the wire: without a zero below zero.
  .map((body): unknown => JSON.parse(JSON.stringify(body)));
