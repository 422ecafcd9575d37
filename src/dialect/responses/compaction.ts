/**
 * Compaction, which only responses has: one item replaces the conversation before it. OpenAI
 * compacts by itself. For every other vendor the gateway asks the model for a summary, which the
 * item carries like reasoning carries its seal. Pure.
 */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  OpaquePartSchema,
  Role,
  ToolChoiceMode,
  ToolChoiceSchema,
  type Part,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  GenerateEventSchema,
  StopReason,
  type GenerateEvent,
  type Generation,
  type Reply,
  type ReplyEnd,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import type { CallerCodec } from "../codec.ts";
import type { JsonReader } from "../reader.ts";
import { objectMembers, writeMembers } from "../../wire/json/source.ts";
import { JsonText, writeJson } from "../../wire/json/json-tree.ts";
import { UnreadableReplyError } from "../../wire/json/value.ts";
import { newPart, newTurn, textPart } from "../turns/parts.ts";
import { openSummary, wrapSummary } from "../turns/seal.ts";
import type { ReplyRewriter } from "../translate.ts";
import { usageJson } from "./usage.ts";

/** The last item of an input that requests a compaction. */
const trigger = "compaction_trigger";

/** Types of the item that a compaction makes; codex has also sent the second. */
const compactionTypes: ReadonlySet<string> = new Set(["compaction", "compaction_summary"]);

/** Whether a request is for a compaction. */
export function asksForCompaction({ conversation }: Generation): boolean {
  return isOpaque(conversation?.turns.at(-1), trigger);
}

/**
 * The turn of an item that the gateway made; undefined if it is another item, or a vendor made it.
 *
 * @throws GatewayError INVALID_REQUEST if it is damaged: without it, the conversation would be lost
 */
export function summaryTurn(item: JsonReader, type: string): Turn | undefined {
  if (!compactionTypes.has(type)) return undefined;
  const summary = openSummary(item.text("encrypted_content"));
  if (summary === undefined) return undefined;
  if (summary === "") {
    throw item.invalid("is damaged: send it as you received it", "encrypted_content");
  }
  item.readAll();
  return newTurn(Role.USER, [textPart(`${summaryIntroduction}\n\n${summary}`)]);
}

const summaryIntroduction =
  "The earlier conversation was replaced by this summary. Continue from where it ends.";

/**
 * Removes the turns that compactions inside the input replaced: a conversation continued by
 * `previous_response_id` still contains them. Instructions stay.
 *
 * @param turns one for each item
 * @throws GatewayError INVALID_REQUEST if a trigger is followed by anything other than its
 * compaction
 */
export function withoutCompacted(turns: Turn[], items: readonly JsonReader[]): Turn[] {
  const at = turns.findLastIndex((turn) => isOpaque(turn, trigger));
  if (at < 0 || at === turns.length - 1) return turns;
  if (!compactionTypes.has(items[at + 1]?.text("type") ?? "")) {
    throw items[at]!.invalid('asks for a compaction: send it as the last item of "input"');
  }
  const instructions = turns.slice(0, at).filter(isInstruction);
  return [...instructions, ...turns.slice(at + 1)];
}

function isInstruction({ role, parts }: Turn): boolean {
  return role === Role.SYSTEM && parts.every(({ kind }) => kind.case !== "opaque");
}

function isOpaque(turn: Turn | undefined, type: string): boolean {
  const kind = turn?.parts[0]?.kind;
  return kind?.case === "opaque" && kind.value.type === type;
}

const request = [
  "Summarise the conversation above, so that it can be continued by a reader who has only your summary.",
  "Include what the user asked for, with every constraint and preference; what was done, with its results; decisions and their reasons; exact names, paths, commands, values and error messages that are still needed; what is unfinished, and the next steps.",
  "Write only the summary. Use no tools, and do not continue the work itself.",
].join("\n");

/**
 * Returns the request that asks a model for the summary. The tools stay, because some vendors
 * refuse calls of unknown tools in the conversation, but none may be called.
 *
 * @throws GatewayError INVALID_REQUEST if there is nothing to summarise
 */
export function askForSummary(generation: Generation): Generation {
  const { conversation, responseFormat: _format, ...rest } = generation;
  const {
    toolChoice: _choice,
    parallelToolCalls: _parallel,
    ...parts
  } = conversation ?? emptyTurns;
  const before = asksForCompaction(generation) ? parts.turns.slice(0, -1) : parts.turns;
  if (before.every(isInstruction)) {
    throw invalid("input", '"input" has nothing to compact: send the conversation in it');
  }
  const tools = parts.tools.filter(({ kind }) => kind.case !== "opaque");
  const mode = ToolChoiceMode.NONE;
  return {
    ...rest,
    verbosity: "",
    conversation: {
      $typeName: "uas.inference.v1.Conversation",
      turns: [...before, newTurn(Role.USER, [textPart(request)], { plain: true })],
      tools,
      ...(tools.length > 0 && { toolChoice: create(ToolChoiceSchema, { mode }) }),
    },
  };
}

const emptyTurns = { turns: [], tools: [], toolChoice: undefined, parallelToolCalls: undefined };

/** Makes the compaction item of the text that a model replies. */
export class CompactionRewriter implements ReplyRewriter {
  readonly #id: string;
  /** The text parts by their index, in order. */
  readonly #texts = new Map<number, string>();

  /** @param callId 32 hexadecimal digits */
  constructor(callId: string) {
    this.#id = `cmp_${callId}`;
  }

  reply(reply: Reply): void {
    const texts = reply.parts.flatMap(({ kind }) =>
      kind.case === "text" ? [kind.value.text] : [],
    );
    const item = this.#item(texts);
    if (item === undefined && reply.stopReason !== StopReason.LENGTH) {
      throw new UnreadableReplyError("no text to compact the conversation by");
    }
    reply.parts = item === undefined ? [] : [item];
    reply.stopReason = endOf(reply);
  }

  events(events: readonly GenerateEvent[]): GenerateEvent[] {
    return events.flatMap((event) => this.#event(event));
  }

  #event(event: GenerateEvent): GenerateEvent[] {
    const { kind } = event;
    switch (kind.case) {
      case "start":
      case "error":
        return [event];
      case "end":
        return this.#end(kind.value);
      case "partStart": {
        const { index, part } = kind.value;
        if (part?.kind.case === "text") this.#texts.set(index, part.kind.value.text);
        return [];
      }
      case "partDelta": {
        const { index, delta } = kind.value;
        const text = this.#texts.get(index);
        if (text !== undefined && delta.case === "text") this.#texts.set(index, text + delta.value);
        return [];
      }
      case "partEnd":
      case undefined:
      default:
        return [];
    }
  }

  #end(end: ReplyEnd): GenerateEvent[] {
    const part = this.#item([...this.#texts.values()]);
    const ended = newEvent({ case: "end", value: { ...end, stopReason: endOf(end) } });
    if (part !== undefined) {
      return [
        newEvent({ case: "partStart", value: { index: 0, part } }),
        newEvent({ case: "partEnd", value: { index: 0 } }),
        ended,
      ];
    }
    if (end.stopReason === StopReason.LENGTH) return [ended];
    const message = "The model wrote no summary of the conversation; try again";
    return [newEvent({ case: "error", value: { code: ErrorCode.UPSTREAM_ERROR, message } })];
  }

  /** The item; undefined if there is no text. */
  #item(texts: readonly string[]): Part | undefined {
    const summary = texts.join("\n").trim();
    if (summary === "") return undefined;
    const encrypted_content = wrapSummary(summary);
    const json = JSON.stringify({ id: this.#id, type: "compaction", encrypted_content });
    const value = create(OpaquePartSchema, {
      dialect: Dialect.RESPONSES,
      type: "compaction",
      json,
    });
    return newPart({ case: "opaque", value });
  }
}

/** Tools were none of the summary's business. */
function endOf({ stopReason }: { readonly stopReason: StopReason }): StopReason {
  return stopReason === StopReason.LENGTH ? StopReason.LENGTH : StopReason.END;
}

type EventInit = NonNullable<Parameters<typeof create<typeof GenerateEventSchema>>[1]>["kind"];

function newEvent(kind: NonNullable<EventInit>): GenerateEvent {
  return create(GenerateEventSchema, { kind });
}

/**
 * Writes whole replies as `POST /v1/responses/compact` does.
 *
 * @param userItems the user's messages as JSON, complete with ids
 */
export function compactReplies(style: CallerCodec, userItems: readonly string[]): CallerCodec {
  return {
    ...style,
    encodeReply({ parts, usage, created }, options) {
      const made = parts.flatMap(({ kind }) => (kind.case === "opaque" ? [kind.value.json] : []));
      const output = [...userItems, ...made].map((json) => new JsonText(json));
      const compacted = {
        id: `resp_${options.callId}`,
        object: "response.compaction",
        created_at: created === 0n ? options.created : Number(created),
        output,
        usage: usageJson(usage),
      };
      return Buffer.from(writeJson(compacted));
    },
  };
}

/** The members that a vendor's own compaction takes. */
const compactMembers: ReadonlySet<string> = new Set([
  "model",
  "input",
  "instructions",
  "previous_response_id",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "service_tier",
]);

/** A body of responses, reduced to what a vendor's own compaction takes. */
export function compactBody(body: Buffer): Buffer {
  const members = objectMembers(body.toString("utf8"));
  return Buffer.from(writeMembers(members.filter(({ name }) => compactMembers.has(name))));
}
