/** Random requests and replies of chat completions. */
import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type Part,
  PartSchema,
  ToolType,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  GenerateEventSchema,
  StopReason,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const word = fc.string({
  unit: fc.constantFrom("a", "b", "X", "0", "9", "_", "-"),
  minLength: 1,
  maxLength: 12,
});
const json = fc.jsonValue({ maxDepth: 2 }).filter((value) => value !== null);
/** Members that no style knows: the names clash with none that the reader takes. */
const strays = fc.dictionary(
  word.map((name) => `x_${name}`),
  json,
  { maxKeys: 2 },
);

/** An object with some of the members, and strays. */
function object(
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<Record<string, unknown>> {
  const known = fc.record({ ...required, ...optional }, { requiredKeys: Object.keys(required) });
  return fc.tuple(known, strays).map(([members, others]) => ({ ...members, ...others }));
}

const breakpoint = fc.constantFrom({ mode: "explicit" }, { mode: "explicit", ttl: "30m" });
const base64 = fc.base64String({ minLength: 4, maxLength: 16 });
const hint = { prompt_cache_breakpoint: breakpoint };
const typed = (value: string) => ({ type: fc.constant(value) });

const textPart = object({ ...typed("text"), text }, hint);
const address = fc.oneof(
  base64.map((data) => `data:image/png;base64,${data}`),
  fc.webUrl(),
);
const imagePart = object(
  {
    ...typed("image_url"),
    image_url: object({ url: address }, { detail: fc.constantFrom("low", "high", "auto") }),
  },
  hint,
);
const audioPart = object({
  ...typed("input_audio"),
  input_audio: object({ data: base64, format: fc.constantFrom("wav", "mp3", "flac") }),
});
const filePart = object({
  ...typed("file"),
  file: fc.oneof(
    object({ file_id: word }, { filename: word }),
    object(
      { file_data: base64.map((data) => `data:application/pdf;base64,${data}`) },
      { filename: word },
    ),
    object({ file_data: base64 }),
  ),
});
const otherPart = object({ ...typed("video_url"), video_url: json });

const contentOf = (part: fc.Arbitrary<unknown>) =>
  fc.oneof(text, fc.array(part, { minLength: 1, maxLength: 3 }));

const system = object(
  { role: fc.constantFrom("system", "developer"), content: contentOf(textPart) },
  { name: word },
);
const user = object(
  {
    role: fc.constant("user"),
    content: contentOf(fc.oneof(textPart, imagePart, audioPart, filePart, otherPart)),
  },
  { name: word },
);
const call = fc.oneof(
  object({
    ...typed("function"),
    id: word,
    function: object({ name: word, arguments: fc.oneof(text, fc.constant('{"a":1}')) }),
  }),
  object({ ...typed("custom"), id: word, custom: object({ name: word, input: text }) }),
);
const assistant = object(
  { role: fc.constant("assistant") },
  {
    content: fc.oneof(
      fc.constant(null),
      contentOf(fc.oneof(textPart, object({ ...typed("refusal"), refusal: text }))),
    ),
    tool_calls: fc.array(call, { minLength: 1, maxLength: 3 }),
    reasoning_content: text,
    audio: object({ id: word }),
    name: word,
  },
);
const refused = object({
  role: fc.constant("assistant"),
  content: fc.constant(null),
  refusal: word,
});
const tool = object(
  { role: fc.constant("tool"), tool_call_id: word, content: contentOf(textPart) },
  { name: word },
);
const message = fc.oneof(system, user, assistant, refused, tool);

const functionTool = object({
  ...typed("function"),
  function: object(
    { name: word },
    {
      description: text,
      parameters: fc.dictionary(word, json, { maxKeys: 3 }),
      strict: fc.boolean(),
    },
  ),
});
const customTool = object({
  ...typed("custom"),
  custom: object({ name: word }, { description: text, format: object(typed("text")) }),
});
const tools = fc.array(fc.oneof(functionTool, customTool, object(typed("other"))), {
  minLength: 1,
  maxLength: 3,
});
const named = fc.oneof(
  word.map((name) => ({ type: "function", function: { name } })),
  word.map((name) => ({ type: "custom", custom: { name } })),
);
const toolChoice = fc.oneof(
  fc.constantFrom("auto", "none", "required"),
  named,
  fc.record({
    ...typed("allowed_tools"),
    allowed_tools: fc.record({
      mode: fc.constantFrom("auto", "required"),
      tools: fc.array(named, { minLength: 1, maxLength: 2 }),
    }),
  }),
);
const responseFormat = fc.oneof(
  fc.constantFrom({ type: "text" }, { type: "json_object" }),
  object({
    ...typed("json_schema"),
    json_schema: object(
      { name: word },
      {
        description: text,
        schema: fc.dictionary(word, json, { maxKeys: 3 }),
        strict: fc.boolean(),
      },
    ),
  }),
);
const share = fc.double({ min: 0, max: 1, noNaN: true });
const penalty = fc.double({ min: -2, max: 2, noNaN: true });

/** A request that only OpenAI's own and compatible vendors understand in full. */
export const anyBody = object(
  { model: word, messages: fc.array(message, { minLength: 1, maxLength: 5 }) },
  {
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: fc.boolean(),
    response_format: responseFormat,
    reasoning_effort: fc.constantFrom("none", "low", "high", "max"),
    verbosity: fc.constantFrom("low", "high"),
    stop: fc.oneof(text, fc.array(text, { maxLength: 4 })),
    max_tokens: fc.integer({ min: 1, max: 9000 }),
    max_completion_tokens: fc.integer({ min: 1, max: 9000 }),
    temperature: share,
    top_p: share,
    presence_penalty: penalty,
    frequency_penalty: penalty,
    seed: fc.maxSafeInteger(),
    user: word,
    safety_identifier: word,
    service_tier: fc.constantFrom("auto", "flex"),
    prompt_cache_key: word,
    logit_bias: fc.dictionary(word, fc.integer(), { maxKeys: 2 }),
    logprobs: fc.boolean(),
    n: fc.constant(1),
    modalities: fc.constant(["text"]),
    stream: fc.boolean(),
    stream_options: object({}, { include_usage: fc.boolean() }),
    web_search_options: object({}),
  },
);

const event = (kind: GenerateEvent["kind"]) => create(GenerateEventSchema, { kind });
const pieces = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 4,
});

interface Said {
  readonly kind: "text" | "reasoning" | "refusal" | "function" | "custom";
  readonly pieces: readonly string[];
  readonly id: string;
  readonly name: string;
}

const kinds = fc.constantFrom<Said["kind"]>("text", "reasoning", "refusal", "function", "custom");
const said = fc.record<Said>({ kind: kinds, pieces, id: word, name: word });

/**
 * The style has one member for each kind of text: what follows one another is one part, all calls
 * come last, and two reasonings would be joined with a gap.
 */
function arranged(parts: readonly Said[]): Said[] {
  const isCall = ({ kind }: Said) => kind === "function" || kind === "custom";
  const texts = parts.filter((part) => !isCall(part));
  const calls = parts.filter(isCall).map((part, i) => ({ ...part, id: `${part.id}${i}` }));
  const kept = texts.filter(
    ({ kind }, i) =>
      kind !== texts[i - 1]?.kind &&
      (kind !== "reasoning" || texts.findIndex((each) => each.kind === kind) === i),
  );
  // Taking one out may have brought two of a kind together.
  return [...kept.filter(({ kind }, i) => kind !== kept[i - 1]?.kind), ...calls];
}

function startOf({ kind, id, name }: Said): Part {
  switch (kind) {
    case "text":
      return create(PartSchema, { kind: { case: "text", value: {} } });
    case "refusal":
      return create(PartSchema, { kind: { case: "refusal", value: {} } });
    case "reasoning":
      return create(PartSchema, { kind: { case: "reasoning", value: {} } });
    case "function":
    case "custom":
    default: {
      const type = kind === "custom" ? ToolType.CUSTOM : ToolType.FUNCTION;
      return create(PartSchema, { kind: { case: "toolCall", value: { id, name, type } } });
    }
  }
}

function eventsOf(parts: readonly Said[], stopReason: StopReason): GenerateEvent[] {
  const events = [event({ case: "start", value: start() })];
  const ends: GenerateEvent[] = [];
  for (const [index, part] of parts.entries()) {
    events.push(eventOf("partStart", { index, part: startOf(part) }));
    const isCall = part.kind === "function" || part.kind === "custom";
    for (const value of part.pieces) {
      const delta = { case: isCall ? ("input" as const) : ("text" as const), value };
      events.push(eventOf("partDelta", { index, delta }));
    }
    if (part.kind === "reasoning") {
      const value = { dialect: Dialect.CHAT_COMPLETIONS, signature: "reasoning_content" };
      events.push(eventOf("partDelta", { index, delta: { case: "seal", value } }));
    }
    (isCall ? ends : events).push(eventOf("partEnd", { index }));
  }
  const serviceTier = "flex";
  const tokens = { inputTokens: 9, cachedInputTokens: 2, outputTokens: 4, reasoningTokens: 1 };
  const usage = { ...tokens, serviceTier };
  return [...events, ...ends, eventOf("end", { stopReason, usage, serviceTier })];
}

function start() {
  return create(GenerateEventSchema, {
    kind: { case: "start", value: { id: "chatcmpl-9", model: "public", created: 5n } },
  }).kind.value as Extract<GenerateEvent["kind"], { case: "start" }>["value"];
}

function eventOf(kind: string, value: unknown): GenerateEvent {
  return create(GenerateEventSchema, { kind: { case: kind, value } } as never);
}

function stopReasonOf(parts: readonly Said[], wanted: StopReason): StopReason {
  if (wanted !== StopReason.END) return wanted;
  if (parts.some(({ kind }) => kind === "function" || kind === "custom")) {
    return StopReason.TOOL_CALLS;
  }
  return parts.some(({ kind }) => kind === "refusal") ? StopReason.REFUSAL : StopReason.END;
}

/** The events of a reply that the style can carry in full. */
export const anyReply = fc
  .tuple(
    fc.array(said, { maxLength: 5 }),
    fc.constantFrom(StopReason.END, StopReason.LENGTH, StopReason.CONTENT_FILTER),
  )
  .map(([parts, reason]) => {
    const kept = arranged(parts);
    return eventsOf(kept, stopReasonOf(kept, reason));
  });
