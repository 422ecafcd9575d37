/** Replies of the messages style: the object, and the events that build it. */
import { type Json, object } from "./read.ts";
import { inPieces, type Play, tokens, type Turn } from "./scenario.ts";
import { seal, sign } from "./seal.ts";
import { namedFrame, type WriteContext, type Written } from "./strict.ts";

/**
 * Writes a reply. Thinking is shown where the request turns it on; the word `redacted` hides it.
 */
export function writeMessage(play: Play, turn: Turn, { request, id }: WriteContext): Written {
  const thinking = object(request.json?.["thinking"]);
  const blocks = [
    ...thinkingBlocks(play, turn, thinking),
    ...(play.text.length > 0 && play.end !== "refusal"
      ? [{ block: { type: "text", text: play.text.join("") }, pieces: play.text }]
      : []),
    ...play.calls.map((call, at) => ({
      block: {
        type: "tool_use",
        id: `toolu_${id.slice(0, 23)}${at}`,
        name: call.name,
        input: JSON.parse(call.arguments) as unknown,
      },
      pieces: ["", ...inPieces(call.arguments, 6)],
    })),
  ];
  const message = {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model: "vendor-model-2026-01-01",
    content: blocks.map(({ block }) => block),
    ...endOf(play),
    usage: usageOf(play),
  };
  return { whole: message, frames: turn.stream ? framesOf(message, blocks, play) : [] };
}

/** A block, and the pieces of it that a stream sends. */
interface Block {
  readonly block: Json;
  readonly pieces: readonly string[];
}

function thinkingBlocks(play: Play, turn: Turn, thinking: Json): Block[] {
  const isOn = thinking["type"] === "enabled" || thinking["type"] === "adaptive";
  if (play.reasoning.length === 0 || !isOn) return [];
  const text = play.reasoning.join("");
  const sealed = { issuer: "messages", id: "", text };
  if (/\bredacted\b/.test(turn.text)) {
    return [{ block: { type: "redacted_thinking", data: seal(sealed) }, pieces: [] }];
  }
  const isShown = thinking["display"] !== "omitted";
  const shown = isShown ? text : "";
  const signature = sign({ ...sealed, text: shown });
  return [
    {
      block: { type: "thinking", thinking: shown, signature },
      pieces: isShown ? play.reasoning : [],
    },
  ];
}

const reasons = {
  stop: "end_turn",
  calls: "tool_use",
  length: "max_tokens",
  refusal: "refusal",
} as const;

function endOf(play: Play): Json {
  const explanation = play.text.join("");
  return {
    stop_reason: reasons[play.end],
    stop_sequence: null,
    ...(play.end === "refusal" && {
      stop_details: { type: "refusal", category: "cyber", explanation },
    }),
  };
}

function usageOf(play: Play): Json {
  const { input, cached, written, output, reasoning } = tokens;
  return {
    input_tokens: input - cached - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { thinking_tokens: play.reasoning.length > 0 ? reasoning : 0 },
    service_tier: "standard",
    inference_geo: "global",
  };
}

function framesOf(message: Json, blocks: readonly Block[], play: Play): string[] {
  const usage = object(message["usage"]);
  const started = {
    ...message,
    content: [],
    stop_reason: null,
    stop_details: undefined,
    usage: { ...usage, output_tokens: 1, output_tokens_details: undefined },
  };
  const { output_tokens, output_tokens_details, ...inputs } = usage;
  const { service_tier: _tier, inference_geo: _geo, cache_creation: _split, ...counts } = inputs;
  const events: Json[] = [
    { type: "message_start", message: started },
    ...(blocks.length === 0 ? [{ type: "ping" }] : []),
    ...blocks.flatMap(({ block, pieces }, index) => [
      { type: "content_block_start", index, content_block: startOf(block) },
      ...(index === 0 ? [{ type: "ping" }] : []),
      ...deltasOf(block, pieces).map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    {
      type: "message_delta",
      delta: endOf(play),
      usage: { ...counts, output_tokens, output_tokens_details },
    },
    { type: "message_stop" },
  ];
  return events.map(namedFrame);
}

function startOf(block: Json): Json {
  switch (block["type"]) {
    case "text":
      return { ...block, text: "" };
    case "thinking":
      return { ...block, thinking: "", signature: "" };
    case "tool_use":
      return { ...block, input: {} };
    default:
      return block;
  }
}

function deltasOf(block: Json, pieces: readonly string[]): Json[] {
  switch (block["type"]) {
    case "text":
      return pieces.map((text) => ({ type: "text_delta", text }));
    case "thinking":
      return [
        ...pieces.map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature: block["signature"] },
      ];
    case "tool_use":
      return pieces.map((partial_json) => ({ type: "input_json_delta", partial_json }));
    default:
      return [];
  }
}
