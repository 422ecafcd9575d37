/** A vendor of chat completions, in full strictness. */
import { type Completion, streamChunks, wholeReply } from "./chat.ts";
import { check } from "./chat-request.ts";
import { asksForUsage, isObject, type RecordedRequest } from "./exchange.ts";
import { doorRefusalAt, errorOf, foreignPrefixes, headers, messageOf } from "./openai.ts";
import {
  describeUrl,
  type Json,
  lastTextOf,
  object,
  objects,
  string,
  textOf,
  without,
} from "./read.ts";
import { type Play, tokens, type Turn } from "./scenario.ts";
import {
  dataFrame,
  type StrictStyle,
  strictStyle,
  type WriteContext,
  type Written,
} from "./strict.ts";

/**
 * @param shows whether it shows reasoning as `reasoning_content`, and takes it back: hosts of open
 * models do, OpenAI does not. Default true
 */
export function strictChat({ reasoning: shows = true } = {}): StrictStyle {
  return strictStyle({
    foreignPrefixes,
    headers,
    doorRefusal: doorRefusalAt("/v1/chat/completions"),
    check: (request) => check(request, shows),
    messageOf,
    errorBody: (error) => ({ error: errorOf(error) }),
    errorFrame: (error) => dataFrame({ error: errorOf(error) }),
    turnOf,
    write: (play, turn, context) =>
      write({ ...play, ...(!shows && { reasoning: [] }) }, turn, context),
  });
}

const notSettings = ["model", "messages", "tools", "stream", "stream_options"];

function turnOf({ json = {} }: RecordedRequest): Turn {
  const messages = objects(json.messages);
  const atUser = messages.findLastIndex((message) => message["role"] === "user");
  const after = messages.slice(atUser + 1);
  const user = messages[atUser]?.["content"];
  return {
    model: string(json.model),
    stream: json.stream === true,
    text: lastTextOf(user),
    system: messages
      .filter(({ role }) => role === "system" || role === "developer")
      .map(({ content }) => textOf(content))
      .join("\n"),
    tools: objects(json["tools"]).map((tool) => {
      const { name, parameters } = object(tool["function"] ?? tool["custom"]);
      return { name: string(name), schema: parameters };
    }),
    toolChoice: toolChoiceOf(json["tool_choice"]),
    parallel: json["parallel_tool_calls"] !== false,
    results: after.filter(({ role }) => role === "tool").map(({ content }) => textOf(content)),
    rounds: after.filter((message) => message["tool_calls"]).length,
    images: objects(user)
      .filter((part) => part["type"] === "image_url")
      .map((part) => describeUrl(string(object(part["image_url"])["url"]))),
    schema: object(object(json["response_format"])["json_schema"])["schema"],
    reasoningBlocks: messages.filter((message) => message["reasoning_content"]).length,
    settings: without(json, notSettings),
  };
}

function toolChoiceOf(choice: unknown): string {
  if (typeof choice === "string") return choice;
  if (!isObject(choice)) return "auto";
  const { name } = object(choice["function"] ?? choice["custom"]);
  return typeof name === "string" ? name : "auto";
}

const finishes = { stop: "stop", calls: "tool_calls", length: "length", refusal: "stop" } as const;

function write(play: Play, turn: Turn, { request, id }: WriteContext): Written {
  const isRefusal = play.end === "refusal";
  const completion: Completion = {
    id: `chatcmpl-${id}`,
    created: 1_760_000_000,
    model: "vendor-model-2026-01-01",
    text: isRefusal ? [] : play.text,
    refusal: isRefusal ? play.text : [],
    reasoning: play.reasoning,
    toolCalls: play.calls.map((call, at) => ({
      id: turn.text.includes("odd ids") ? oddId(call.name, id, at) : `call_${id.slice(0, 22)}${at}`,
      name: call.name,
      arguments: turn.text.includes("empty arguments") ? "" : call.arguments,
    })),
    finish: finishes[play.end],
    usage: usageOf(play),
    extra: {},
  };
  const options = object(request.json?.stream_options);
  const chunks = turn.stream ? streamChunks(completion, asksForUsage(request)) : [];
  if (turn.text.includes("interleaved")) interleave(chunks);
  const frames = chunks.map((chunk) =>
    dataFrame(options["include_obfuscation"] === false ? unpadded(chunk) : chunk),
  );
  return { whole: wholeReply(completion), frames: [...frames, dataFrame("[DONE]")] };
}

/** An ID like those of open models' hosts: too long, with characters that other styles refuse. */
function oddId(name: string, id: string, at: number): string {
  return `functions.${name}:${at}/${id.repeat(3)}`;
}

/** Sends the pieces of several calls in turn, as some hosts do. */
function interleave(chunks: Json[]): void {
  const indexOf = (chunk: Json): number => {
    const [choice] = objects(chunk["choices"]);
    const [call] = objects(object(choice?.["delta"])["tool_calls"]);
    return typeof call?.["index"] === "number" ? call["index"] : -1;
  };
  const first = chunks.filter((chunk) => indexOf(chunk) === 0);
  const second = chunks.filter((chunk) => indexOf(chunk) === 1);
  const begin = chunks.findIndex((chunk) => indexOf(chunk) === 0);
  const mixed = first.flatMap((chunk, at) => [chunk, ...(second[at] ? [second[at]] : [])]);
  mixed.push(...second.slice(first.length));
  chunks.splice(begin, first.length + second.length, ...mixed);
}

function unpadded(chunk: Json): Json {
  return without(chunk, ["obfuscation"]);
}

function usageOf(play: Play): NonNullable<Completion["usage"]> {
  const { input, cached, written, output, reasoning } = tokens;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: play.reasoning.length > 0 ? reasoning : 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
