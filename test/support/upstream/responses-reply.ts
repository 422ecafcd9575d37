/** Replies of the responses style: the object, and the events that build it. */
import { type Json, object, objects } from "./read.ts";
import { isCompact } from "./responses-rules.ts";
import type { ResponsesStore } from "./responses-store.ts";
import { inPieces, type Play, tokens, type Turn } from "./scenario.ts";
import { seal } from "./seal.ts";
import { namedFrame, type WriteContext, type Written } from "./strict.ts";

/** Writes a reply, and keeps it if it is to be stored. */
export function writeResponse(
  play: Play,
  turn: Turn,
  { request, id, store }: WriteContext & { readonly store: ResponsesStore },
): Written {
  const json = request.json ?? {};
  const isTriggered = objects(json["input"]).at(-1)?.["type"] === "compaction_trigger";
  if (isCompact(request.url)) return compacted(play, json, id);
  const items = isTriggered ? [compaction(id)] : itemsOf(play, json, id);
  const response = { ...envelope(json, id), ...endOf(play), output: items.map(({ item }) => item) };
  store.keep(json, response);
  return { whole: response, frames: turn.stream ? framesOf(response, items, json) : [] };
}

/**
 * The reply of the endpoint that compacts: the user's messages, and the item in place of all
 * others.
 */
function compacted(play: Play, { input }: Json, id: string): Written {
  const messages = objects(input).filter(({ role }) => role === "user");
  const users = messages.map((message, at) => ({
    type: "message",
    status: "completed",
    ...message,
    id: `msg_${id}${at}`,
  }));
  const { usage } = endOf(play);
  const output = [...users, compaction(id).item];
  const whole = { id: `resp_${id}`, object: "response.compaction", created_at: 1, output, usage };
  return { whole, frames: [] };
}

function compaction(id: string): Item {
  const encrypted_content = seal({ issuer: "compaction", id, text: "what was said" });
  return { item: { id: `cmp_${id}`, type: "compaction", encrypted_content }, pieces: [] };
}

/** An item, and the pieces of it that a stream sends. */
interface Item {
  readonly item: Json;
  readonly pieces: readonly string[];
}

function itemsOf(play: Play, json: Json, id: string): Item[] {
  const items: Item[] = [];
  if (play.reasoning.length > 0) items.push(reasoningItem(play.reasoning, json, `rs_${id}`));
  if (play.text.length > 0) items.push(messageItem(play, `msg_${id}`));
  for (const [at, call] of play.calls.entries()) {
    items.push({
      item: {
        id: `fc_${id}${at}`,
        type: "function_call",
        status: "completed",
        arguments: call.arguments,
        call_id: `call_${id.slice(0, 22)}${at}`,
        name: call.name,
      },
      pieces: inPieces(call.arguments, 6),
    });
  }
  return items;
}

function reasoningItem(reasoning: readonly string[], json: Json, id: string): Item {
  const isSummed = object(json["reasoning"])["summary"] != null;
  const text = reasoning.join("");
  const include = Array.isArray(json["include"]) ? json["include"] : [];
  return {
    item: {
      id,
      type: "reasoning",
      summary: isSummed ? [{ type: "summary_text", text }] : [],
      ...(include.includes("reasoning.encrypted_content") && {
        encrypted_content: seal({ issuer: "responses", id, text }),
      }),
    },
    pieces: isSummed ? reasoning : [],
  };
}

function messageItem(play: Play, id: string): Item {
  const text = play.text.join("");
  const part =
    play.end === "refusal"
      ? { type: "refusal", refusal: text }
      : { type: "output_text", annotations: [], logprobs: [], text };
  const status = play.end === "length" ? "incomplete" : "completed";
  return {
    item: { id, type: "message", status, content: [part], role: "assistant" },
    pieces: play.text,
  };
}

function envelope(json: Json, id: string): Json {
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: 1_760_000_000,
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: json["instructions"] ?? null,
    max_output_tokens: json["max_output_tokens"] ?? null,
    max_tool_calls: null,
    model: "vendor-model-2026-01-01",
    output: [],
    parallel_tool_calls: json["parallel_tool_calls"] ?? true,
    previous_response_id: json["previous_response_id"] ?? null,
    prompt_cache_key: json["prompt_cache_key"] ?? null,
    reasoning: { effort: null, summary: null, ...object(json["reasoning"]) },
    safety_identifier: null,
    service_tier: "default",
    store: json["store"] ?? true,
    temperature: json["temperature"] ?? 1,
    text: json["text"] ?? { format: { type: "text" }, verbosity: "medium" },
    tool_choice: json["tool_choice"] ?? "auto",
    tools: json["tools"] ?? [],
    top_logprobs: 0,
    top_p: json["top_p"] ?? 1,
    truncation: "disabled",
    usage: null,
    user: null,
    metadata: json["metadata"] ?? {},
  };
}

function endOf(play: Play): Json {
  const isCut = play.end === "length";
  const { input, cached, written, output, reasoning } = tokens;
  return {
    status: isCut ? "incomplete" : "completed",
    ...(!isCut && { completed_at: 1_760_000_001 }),
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: play.reasoning.length > 0 ? reasoning : 0 },
      total_tokens: input + output,
    },
  };
}

function framesOf(response: Json, items: readonly Item[], json: Json): string[] {
  const started = { ...response, status: "in_progress", output: [], usage: null };
  const isPadded = object(json["stream_options"])["include_obfuscation"] !== false;
  const padding = isPadded ? { obfuscation: "x4Kd9" } : {};
  const events: Json[] = [
    { type: "response.created", response: started },
    { type: "response.in_progress", response: started },
    ...items.flatMap((item, at) => eventsOf(item, at, padding)),
    { type: `response.${String(response["status"])}`, response },
  ];
  return events.map(({ type, ...event }, at) =>
    namedFrame({ type, sequence_number: at, ...event }),
  );
}

function eventsOf({ item, pieces }: Item, at: number, padding: Json): Json[] {
  const added = { type: "response.output_item.added", output_index: at };
  const done = { type: "response.output_item.done", output_index: at, item };
  const place = { item_id: item["id"], output_index: at };
  switch (item["type"]) {
    case "function_call":
      return [
        { ...added, item: { ...item, status: "in_progress", arguments: "" } },
        ...pieces.map((delta) => ({
          type: "response.function_call_arguments.delta",
          ...place,
          delta,
          ...padding,
        })),
        {
          type: "response.function_call_arguments.done",
          ...place,
          arguments: item["arguments"],
        },
        done,
      ];
    case "reasoning":
      return [
        { ...added, item: { ...item, summary: [] } },
        ...(pieces.length > 0 ? summaryEvents(pieces, place, padding) : []),
        done,
      ];
    case "compaction":
      return [{ ...added, item }, done];
    default:
      return [
        { ...added, item: { ...item, status: "in_progress", content: [] } },
        ...partEvents(item, pieces, { place, padding }),
        done,
      ];
  }
}

function summaryEvents(pieces: readonly string[], item: Json, padding: Json): Json[] {
  const place = { ...item, summary_index: 0 };
  const type = "response.reasoning_summary_";
  const text = pieces.join("");
  const part = { type: "summary_text", text };
  return [
    { type: `${type}part.added`, ...place, part: { ...part, text: "" } },
    ...pieces.map((delta) => ({ type: `${type}text.delta`, ...place, delta, ...padding })),
    { type: `${type}text.done`, ...place, text },
    { type: `${type}part.done`, ...place, part },
  ];
}

function partEvents(
  item: Json,
  pieces: readonly string[],
  { place: item_, padding }: { place: Json; padding: Json },
): Json[] {
  const [part] = item["content"] as [Json];
  const place = { ...item_, content_index: 0 };
  const isRefusal = part["type"] === "refusal";
  const type = isRefusal ? "response.refusal" : "response.output_text";
  const member = isRefusal ? "refusal" : "text";
  const logprobs = isRefusal ? {} : { logprobs: [] };
  return [
    { type: "response.content_part.added", ...place, part: { ...part, [member]: "" } },
    ...pieces.map((delta) => ({ type: `${type}.delta`, ...place, delta, ...logprobs, ...padding })),
    { type: `${type}.done`, ...place, [member]: part[member], ...logprobs },
    { type: "response.content_part.done", ...place, part },
  ];
}
