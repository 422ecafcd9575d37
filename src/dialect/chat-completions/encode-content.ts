/** What stands in messages for a vendor: content, calls and results. */
import { createHash } from "node:crypto";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ToolType,
  Role,
  type OpaquePart,
  type Part,
  type Reasoning,
  type ToolCall,
  type ToolResult,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../body-members.ts";
import { chatToolName } from "./encode-tools.ts";
import { encodeMedia } from "./media.ts";
import { reasoningMembers, parseJson, type WireBody } from "./wire.ts";

/** An object on the wire. */
type Wire = Record<string, unknown>;

/**
 * A part as parts of a message's content.
 *
 * @throws GatewayError INVALID_REQUEST where content cannot hold it
 */
function encodePart(part: Part, wire: WireBody): Wire[] {
  const encoded = encodeKind(part, wire);
  const last = encoded.at(-1);
  if (part.cacheHint !== undefined) {
    const { ttl } = part.cacheHint;
    if (!wire.isOwn) wire.drop("cache_hint");
    else if (last) last["prompt_cache_breakpoint"] = { mode: "explicit", ...(ttl && { ttl }) };
  }
  if (last !== undefined) wire.writeExtras(last, part.extras);
  return encoded;
}

function encodeKind({ kind }: Part, wire: WireBody): Wire[] {
  switch (kind.case) {
    case "text":
      if (kind.value.citations.length > 0) wire.drop("citations");
      return [{ type: "text", text: kind.value.text }];
    case "refusal":
      return [{ type: "refusal", refusal: kind.value.text }];
    case "media":
      return encodeMedia(kind.value, { isOwn: wire.isOwn, drop: (name) => wire.drop(name) });
    case "opaque":
      return [encodeOpaque(kind.value)];
    case "toolCall":
    case "toolResult":
    case "reasoning":
    case undefined:
    default:
      throw invalid(`A part "${kind.case ?? "without kind"}" cannot stand here`, "messages");
  }
}

/** An opaque part as it was. @throws GatewayError INVALID_REQUEST where it is of another style */
function encodeOpaque({ dialect, type, json }: OpaquePart): Wire {
  if (dialect === Dialect.CHAT_COMPLETIONS) return parseJson(json, "messages") as Wire;
  throw invalid(
    `The model's vendor cannot read "${type}"; leave it out, or use a model whose vendor can`,
    "messages",
  );
}

/** A call as the model made it. */
function encodeCall(call: ToolCall, part: Part, wire: WireBody): Wire {
  const { name, namespace, input } = call;
  const id = callId(call.id, wire);
  const wireName = chatToolName({ name, namespace });
  const encoded: Wire =
    call.type === ToolType.CUSTOM
      ? { id, type: "custom", custom: { name: wireName, input } }
      : {
          id,
          type: "function",
          // Of other styles' calls nothing may be left; vendors of this one parse it.
          function: { name: wireName, arguments: input === "" && !wire.isOwn ? "{}" : input },
        };
  if (part.cacheHint) wire.drop("cache_hint");
  wire.writeExtras(encoded, part.extras);
  return encoded;
}

/** A result as a message, and what of it only a user's message can hold. */
interface EncodedResult {
  readonly message: Wire;
  /** Pictures and files, as parts of content. */
  readonly attachments: readonly Wire[];
}

/** What a tool answered. */
function encodeResult(result: ToolResult, part: Part, wire: WireBody): EncodedResult {
  const id = callId(result.toolCallId, wire);
  const pieces = result.parts.flatMap((each) => encodePart(each, wire));
  if (part.cacheHint) wire.drop("cache_hint");
  const message: Wire = { role: "tool", tool_call_id: id };
  if (result.name && wire.isOwn) message["name"] = result.name;
  if (wire.isOwn) {
    message["content"] = result.plain ? textsOf(pieces).join("") : pieces;
    wire.writeExtras(message, part.extras);
    return { message, attachments: [] };
  }
  wire.writeExtras(message, part.extras);
  const texts = textsOf(pieces);
  const attachments = pieces.filter(({ type }) => type !== "text");
  if (texts.length === 0 && attachments.length > 0) texts.push("See the attachment that follows.");
  message["content"] = (result.isError ? "Error: " : "") + texts.join("\n");
  if (attachments.length > 0) {
    attachments.unshift({ type: "text", text: `Attachment of the result of tool call ${id}:` });
  }
  return { message, attachments };
}

/** The texts among parts of content. */
function textsOf(pieces: readonly Wire[]): string[] {
  return pieces.flatMap(({ type, text }) =>
    type === "text" && typeof text === "string" ? [text] : [],
  );
}

/** Reasoning goes back to vendors of this style only; what others sealed stays out. */
function encodeReasoning(
  { text, seal }: Reasoning,
  wire: WireBody,
): Readonly<Record<string, string>> {
  if (seal?.dialect !== Dialect.CHAT_COMPLETIONS) {
    wire.drop("turns.reasoning");
    return {};
  }
  // A client may have made the seal up: it names one of these members or none.
  const member = reasoningMembers.find((each) => each === seal.signature);
  return { [member ?? "reasoning_content"]: text };
}

/** The most characters that vendors of this style take for a call's id. */
const callIdCharsMax = 40;

/** The same id always becomes the same other one, so that results find their call. */
function callId(id: string, { isOwn }: WireBody): string {
  if (isOwn || id.length <= callIdCharsMax) return id;
  return `call_${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;
}

/*
 * The turns of a conversation as messages for a vendor. What came in this style is written as it was. What
 * came in another is put into the order that vendors of this one demand: all results of tools right behind
 * the calls, calls and text of one turn of the model in one message; and into the forms that all of them
 * know: plain strings, and `system` for `developer`.
 */

/** Writes turns as messages. @throws GatewayError INVALID_REQUEST for what messages cannot hold */
export function encodeMessages(turns: readonly Turn[], wire: WireBody): Wire[] {
  if (wire.isOwn) {
    return turns.flatMap((turn) =>
      turn.role === Role.ASSISTANT ? [encodeOwnAssistant(turn, wire)] : encodeOthers([turn], wire),
    );
  }
  refusePrefill(turns, wire);
  return runs(turns).flatMap((run) =>
    run[0]?.role === Role.ASSISTANT ? encodeAssistants(run, wire) : encodeOthers(run, wire),
  );
}

/** In messages the model goes on with a last turn of its own; here it would begin anew. */
function refusePrefill(turns: readonly Turn[], { source }: WireBody): void {
  const last = turns.at(-1);
  if (source !== Dialect.MESSAGES || last?.role !== Role.ASSISTANT) return;
  if (last.parts.at(-1)?.kind.case !== "text") return;
  throw invalid(
    "This model cannot continue a message of the assistant: end the conversation with a user message",
    "messages",
  );
}

/** Turns of the model that follow each other, and turns of others that do. */
function runs(turns: readonly Turn[]): Turn[][] {
  const all: Turn[][] = [];
  for (const turn of turns) {
    const last = all.at(-1);
    const isSame = (last?.[0]?.role === Role.ASSISTANT) === (turn.role === Role.ASSISTANT);
    if (last !== undefined && isSame) last.push(turn);
    else all.push([turn]);
  }
  return all;
}

/** Turns of the user and the system: results first, then what belongs to them, then the rest in order. */
function encodeOthers(turns: readonly Turn[], wire: WireBody): Wire[] {
  const results: Wire[] = [];
  const attachments: Wire[] = [];
  for (const part of turns.flatMap(({ parts }) => parts)) {
    if (part.kind.case !== "toolResult") continue;
    const encoded = encodeResult(part.kind.value, part, wire);
    results.push(encoded.message);
    attachments.push(...encoded.attachments);
  }
  if (attachments.length > 0) results.push({ role: "user", content: attachments });
  return [...results, ...turns.flatMap((turn) => encodeSpoken(turn, wire))];
}

function encodeSpoken(turn: Turn, wire: WireBody): Wire[] {
  const parts = turn.parts.filter(({ kind }) => kind.case !== "toolResult");
  const isEmpty = parts.length === 0 && (!wire.isOwn || turn.parts.length > 0);
  if (isEmpty) return [];
  const pieces = parts.flatMap((part) => encodePart(part, wire));
  const content =
    turn.role === Role.SYSTEM ? systemContent(turn, pieces, wire) : userContent(turn, pieces, wire);
  const message: Wire = {
    role: roleWord(turn, wire),
    content,
    ...(turn.name && { name: turn.name }),
  };
  wire.writeExtras(message, turn.extras);
  return [message];
}

/** Few vendors know `developer`, and those that do take `system` for the same. */
function roleWord({ role, roleWord: word }: Turn, { isOwn }: WireBody): string {
  switch (role) {
    case Role.SYSTEM:
      return (isOwn && word) || "system";
    case Role.USER:
      return "user";
    case Role.UNSPECIFIED:
    case Role.ASSISTANT:
    default:
      throw invalid(
        "A turn has no role; it must be the system's, the user's or the model's",
        "role",
      );
  }
}

function systemContent(turn: Turn, pieces: readonly Wire[], { isOwn }: WireBody): unknown {
  if (isOwn) return turn.plain ? textsOf(pieces).join("") : pieces;
  if (pieces.some(({ type }) => type !== "text")) {
    throw invalid("The model's vendor takes text only in system messages", "messages");
  }
  return textsOf(pieces).join("\n\n");
}

function userContent(turn: Turn, pieces: readonly Wire[], { isOwn }: WireBody): unknown {
  if (isOwn) return turn.plain ? textsOf(pieces).join("") : pieces;
  const [only] = pieces;
  return pieces.length === 1 && only?.["type"] === "text" ? only["text"] : pieces;
}

function encodeOwnAssistant(turn: Turn, wire: WireBody): Wire {
  const said = sort(turn.parts, wire);
  const texts = textsOf(said.content);
  const refusals = said.content.filter(({ type }) => type === "refusal");
  const plain = texts.length > 0 ? texts.join("") : null;
  const message: Wire = {
    role: "assistant",
    content: turn.plain ? plain : said.content,
    ...(turn.plain && refusals.length > 0 && { refusal: refusals.map(refusalText).join("") }),
    ...said.members,
    ...(said.calls.length > 0 && { tool_calls: said.calls }),
    ...(turn.name && { name: turn.name }),
  };
  wire.writeExtras(message, turn.extras);
  return message;
}

/** With calls among them, all of it is one message: results must follow it at once. Else each turn is one,
 * together with the reasoning before it: vendors refuse a message of reasoning alone. */
function encodeAssistants(turns: readonly Turn[], wire: WireBody): Wire[] {
  const hasCalls = turns.some(({ parts }) => parts.some(({ kind }) => kind.case === "toolCall"));
  return (hasCalls ? [turns] : withReasoning(turns, wire)).flatMap((joined) =>
    encodeSaid(
      joined.flatMap(({ parts }) => parts),
      {
        extras: joined.flatMap(({ extras }) => extras),
        name: joined.find(({ name }) => name)?.name ?? "",
      },
      wire,
    ),
  );
}

/** Each turn with those before it that are nothing but reasoning. Reasoning that led to nothing stays out. */
function withReasoning(turns: readonly Turn[], wire: WireBody): Turn[][] {
  const all: Turn[][] = [];
  let reasoning: Turn[] = [];
  for (const turn of turns) {
    reasoning.push(turn);
    if (turn.parts.every(({ kind }) => kind.case === "reasoning")) continue;
    all.push(reasoning);
    reasoning = [];
  }
  if (reasoning.length > 0) wire.drop("turns.reasoning");
  return all;
}

type Speaker = Pick<Turn, "extras" | "name">;

function encodeSaid(parts: readonly Part[], { extras, name }: Speaker, wire: WireBody): Wire[] {
  const { content, calls, members } = sort(parts, wire);
  const isEmpty = content.length + calls.length + Object.keys(members).length === 0;
  if (isEmpty) return [];
  const message: Wire = {
    role: "assistant",
    content: content.length > 0 ? saidText(parts) : null,
    ...members,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(name && { name }),
  };
  wire.writeExtras(message, extras);
  return [message];
}

/** Texts that cite sources are pieces of one; others are apart. A refusal is what was said, too. */
function saidText(parts: readonly Part[]): string {
  let all = "";
  let wasCited = true;
  for (const { kind } of parts) {
    if (kind.case !== "text" && kind.case !== "refusal") continue;
    const isCited = kind.case === "text" && kind.value.citations.length > 0;
    all += (all === "" || wasCited || isCited ? "" : "\n\n") + kind.value.text;
    wasCited = isCited;
  }
  return all;
}

/** What the model said, by where it stands in a message. */
interface Said {
  readonly content: Wire[];
  readonly calls: Wire[];
  readonly members: Wire;
}

function sort(parts: readonly Part[], wire: WireBody): Said {
  const said: Said = { content: [], calls: [], members: {} };
  for (const part of parts) {
    const { kind } = part;
    if (kind.case === "toolCall") said.calls.push(encodeCall(kind.value, part, wire));
    else if (kind.case === "reasoning") addReasoning(said, encodeReasoning(kind.value, wire));
    else if (kind.case === "opaque" && kind.value.type === "audio") {
      said.members["audio"] = encodeOpaque(kind.value);
    } else if (kind.case === "media") {
      throw invalid(
        "The model's vendor takes no pictures or files that the model sent",
        "messages",
      );
    } else said.content.push(...encodePart(part, wire));
  }
  return said;
}

function addReasoning({ members }: Said, added: Readonly<Record<string, string>>): void {
  for (const [member, text] of Object.entries(added)) {
    const before = members[member];
    members[member] = typeof before === "string" ? `${before}\n\n${text}` : text;
  }
}

function refusalText({ refusal }: Wire): string {
  return typeof refusal === "string" ? refusal : "";
}
