/**
 * Encodes the turns of a conversation as messages for a vendor. Requests of this style are written
 * unchanged. Requests of other styles are arranged as vendors of this style demand: all tool
 * results directly after the calls, and the calls and text of one assistant turn in one message.
 * They use only forms that every vendor accepts: plain strings, and `system` for `developer`.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type OpaquePart,
  type Part,
  type Reasoning,
  Role,
  type ToolCall,
  type ToolResult,
  ToolType,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { append } from "../../core/append.ts";
import { invalid } from "../../core/validation.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import type { EncodeContext } from "./encode-context.ts";
import { chatToolName } from "./encode-tools.ts";
import { encodeMedia } from "./media.ts";
import { addMembers, carriedMembers, type OpaqueMembers, shownDetails } from "./opaque-members.ts";
import { wireCallId } from "./wire.ts";
import { reasoningMembers } from "./reasoning.ts";
import { refusePrefill } from "../turns/parts.ts";
import { portableTurns } from "../turns/portable-turns.ts";
import { placeSystem } from "../turns/system-turns.ts";

/** A JSON object of the body. */
type Wire = Record<string, unknown>;

/**
 * Part of a message's content. Parts specific to this style keep the author's text with all its
 * members.
 */
type Piece = Wire | JsonText;

/**
 * A part as parts of a message's content.
 *
 * @throws GatewayError INVALID_REQUEST if content cannot hold it
 */
function encodePart(part: Part, context: EncodeContext): Piece[] {
  if (part.kind.case === "opaque") return [encodeOpaquePart(part, part.kind.value, context)];
  const encoded = encodeKind(part, context);
  const last = encoded.at(-1);
  if (part.cacheHint !== undefined) {
    const { ttl } = part.cacheHint;
    if (!context.isOwn) context.drop("cache_hint");
    else if (last) last["prompt_cache_breakpoint"] = { mode: "explicit", ...(ttl && { ttl }) };
  }
  if (last !== undefined) context.writeExtras(last, part.extras);
  return encoded;
}

function encodeKind({ kind }: Part, context: EncodeContext): Wire[] {
  switch (kind.case) {
    case "text":
      if (kind.value.citations.length > 0) context.drop("citations");
      return [{ type: "text", text: kind.value.text }];
    case "refusal":
      return [{ type: "refusal", refusal: kind.value.text }];
    case "media":
      return encodeMedia(kind.value, { isOwn: context.isOwn, drop: (name) => context.drop(name) });
    case "opaque":
    case "toolCall":
    case "toolResult":
    case "reasoning":
    case undefined:
    default:
      throw invalid("messages", `A part "${kind.case ?? "without kind"}" is not allowed here`);
  }
}

function encodeOpaquePart(part: Part, opaque: OpaquePart, context: EncodeContext): JsonText {
  if (part.cacheHint !== undefined && !context.isOwn) context.drop("cache_hint");
  context.writeExtras({}, part.extras);
  return encodeOpaque(opaque, context);
}

/** An opaque part as it was. @throws GatewayError INVALID_REQUEST if it is of another style */
function encodeOpaque({ dialect, type, json }: OpaquePart, context: EncodeContext): JsonText {
  if (dialect === Dialect.CHAT_COMPLETIONS) return context.json(json, "messages");
  throw invalid(
    "messages",
    `The model's vendor cannot read "${type}"; leave it out, or use a model whose vendor can`,
  );
}

/** A call as the model made it. */
function encodeCall(call: ToolCall, part: Part, context: EncodeContext): Wire {
  const { name, namespace, input } = call;
  const id = callId(call.id, context);
  const wireName = chatToolName({ name, namespace });
  const encoded: Wire =
    call.type === ToolType.CUSTOM
      ? { id, type: "custom", custom: { name: wireName, input } }
      : {
          id,
          type: "function",
          // Of other styles' calls nothing may be left; vendors of this one parse it.
          function: { name: wireName, arguments: input === "" && !context.isOwn ? "{}" : input },
        };
  if (part.cacheHint) context.drop("cache_hint");
  context.writeExtras(encoded, part.extras);
  return encoded;
}

/** A result as a message, and what of it only a user's message can hold. */
interface EncodedResult {
  readonly message: Wire;
  /** Pictures and files, as parts of content. */
  readonly attachments: readonly Piece[];
}

/** Encodes the result of a tool. */
function encodeResult(result: ToolResult, part: Part, context: EncodeContext): EncodedResult {
  const id = callId(result.toolCallId, context);
  const pieces = result.parts.flatMap((each) => encodePart(each, context));
  if (part.cacheHint) context.drop("cache_hint");
  const message: Wire = { role: "tool", tool_call_id: id };
  if (result.name && context.isOwn) message["name"] = result.name;
  if (context.isOwn) {
    message["content"] = result.plain ? textsOf(pieces).join("") : pieces;
    context.writeExtras(message, part.extras);
    return { message, attachments: [] };
  }
  context.writeExtras(message, part.extras);
  const texts = textsOf(pieces);
  const attachments = pieces.filter((piece) => typeOf(piece) !== "text");
  if (texts.length === 0 && attachments.length > 0) texts.push("See the attachment that follows.");
  message["content"] = (result.isError ? "Error: " : "") + texts.join("\n");
  if (attachments.length > 0) {
    attachments.unshift({ type: "text", text: `Attachment of the result of tool call ${id}:` });
  }
  return { message, attachments };
}

/** The texts among parts of content. */
function textsOf(pieces: readonly Piece[]): string[] {
  return pieces.flatMap((piece) => {
    const { text } = piece;
    return typeOf(piece) === "text" && typeof text === "string" ? [text] : [];
  });
}

function typeOf(piece: Piece): unknown {
  return piece instanceof JsonText ? undefined : piece["type"];
}

/** Reasoning goes back to vendors of this style only; what others sealed stays out. */
function encodeReasoning(
  { text, seal }: Reasoning,
  context: EncodeContext,
): Readonly<Record<string, string>> {
  if (seal?.dialect !== Dialect.CHAT_COMPLETIONS) {
    context.drop("turns.reasoning");
    return {};
  }
  // The text is in a member that returns, too.
  if (shownDetails.some((name) => name === seal.signature)) return {};
  // A client may have made the seal up: it names one of these members or none.
  const member = reasoningMembers.find((each) => each === seal.signature);
  return { [member ?? "reasoning_content"]: text };
}

function callId(id: string, { isOwn, quirks }: EncodeContext): string {
  return isOwn ? id : wireCallId(id, quirks.callIds);
}

/** Writes turns as messages. @throws GatewayError INVALID_REQUEST for what messages cannot hold */
export function encodeMessages(turns: readonly Turn[], context: EncodeContext): Wire[] {
  if (context.isOwn) {
    return turns.flatMap((turn) =>
      turn.role === Role.ASSISTANT
        ? [encodeOwnAssistant(turn, context)]
        : encodeOthers([turn], context),
    );
  }
  refusePrefill(turns, context.source);
  const { quirks } = context;
  const portable = portableTurns(turns, {
    dialect: Dialect.CHAT_COMPLETIONS,
    drop: (name) => context.drop(name),
    quirks,
  });
  const placed = placeSystem(portable, quirks.lateSystem ?? "in_place");
  const messages = runs(placed).flatMap((run) =>
    run[0]?.role === Role.ASSISTANT ? encodeAssistants(run, context) : encodeOthers(run, context),
  );
  const { role, tool_calls: calls } = messages.at(-1) ?? {};
  const isPrefill = role === "assistant" && calls === undefined;
  if (isPrefill && quirks.prefill === "refused") messages.push(continuation);
  return messages;
}

/**
 * The user's message behind a final message of the assistant, for vendors that refuse such an end.
 */
const continuation: Wire = { role: "user", content: "Continue." };

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

/**
 * Turns of the user and the system: results first, then what belongs to them, then the rest in
 * order.
 */
function encodeOthers(turns: readonly Turn[], context: EncodeContext): Wire[] {
  const results: Wire[] = [];
  const attachments: Piece[] = [];
  for (const part of turns.flatMap(({ parts }) => parts)) {
    if (part.kind.case !== "toolResult") continue;
    const encoded = encodeResult(part.kind.value, part, context);
    results.push(encoded.message);
    append(attachments, encoded.attachments);
  }
  if (attachments.length > 0) results.push({ role: "user", content: attachments });
  return [...results, ...turns.flatMap((turn) => encodeSpoken(turn, context))];
}

function encodeSpoken(turn: Turn, context: EncodeContext): Wire[] {
  const parts = turn.parts.filter(({ kind }) => kind.case !== "toolResult");
  const isEmpty = parts.length === 0 && (!context.isOwn || turn.parts.length > 0);
  if (isEmpty) return [];
  const pieces = parts.flatMap((part) => encodePart(part, context));
  const content =
    turn.role === Role.SYSTEM
      ? systemContent(turn, pieces, context)
      : userContent(turn, pieces, context);
  const message: Wire = {
    role: roleWord(turn, context),
    content,
    ...(turn.name && { name: turn.name }),
  };
  context.writeExtras(message, turn.extras);
  return [message];
}

/** Few vendors accept `developer`, and those that do treat `system` alike. */
function roleWord({ role, roleWord: word }: Turn, { isOwn }: EncodeContext): string {
  switch (role) {
    case Role.SYSTEM:
      return (isOwn && word) || "system";
    case Role.USER:
      return "user";
    case Role.UNSPECIFIED:
    case Role.ASSISTANT:
    default:
      throw invalid("role", "A message has no role; send system, user or assistant");
  }
}

function systemContent(turn: Turn, pieces: readonly Piece[], { isOwn }: EncodeContext): unknown {
  if (isOwn) return turn.plain ? textsOf(pieces).join("") : pieces;
  if (pieces.some((piece) => typeOf(piece) !== "text")) {
    throw invalid("messages", "The model's vendor accepts only text in system messages");
  }
  return textsOf(pieces).join("\n\n");
}

function userContent(turn: Turn, pieces: readonly Piece[], { isOwn }: EncodeContext): unknown {
  if (isOwn) return turn.plain ? textsOf(pieces).join("") : pieces;
  const [only] = pieces;
  return pieces.length === 1 && only && typeOf(only) === "text" ? only.text : pieces;
}

function encodeOwnAssistant(turn: Turn, context: EncodeContext): Wire {
  const said = sort(turn.parts, context);
  const texts = textsOf(said.content);
  const refusals = said.content.filter((piece) => typeOf(piece) === "refusal");
  const plain = texts.length > 0 ? texts.join("") : null;
  const message: Wire = {
    role: "assistant",
    content: turn.plain ? plain : said.content,
    ...(turn.plain && refusals.length > 0 && { refusal: refusals.map(refusalText).join("") }),
    ...said.members,
    ...(said.calls.length > 0 && { tool_calls: said.calls }),
    ...(turn.name && { name: turn.name }),
  };
  context.writeExtras(message, turn.extras);
  return message;
}

/**
 * With calls among them, all of it is one message: results must follow it at once. Else each turn
 * is one, together with the reasoning before it: vendors refuse a message of reasoning alone.
 */
function encodeAssistants(turns: readonly Turn[], context: EncodeContext): Wire[] {
  const hasCalls = turns.some(({ parts }) => parts.some(({ kind }) => kind.case === "toolCall"));
  return (hasCalls ? [turns] : withReasoning(turns, context)).flatMap((joined) =>
    encodeSaid(
      joined.flatMap(({ parts }) => parts),
      {
        extras: joined.flatMap(({ extras }) => extras),
        name: joined.find(({ name }) => name)?.name ?? "",
      },
      context,
    ),
  );
}

/**
 * Each turn with those before it that are nothing but reasoning. Reasoning that led to nothing
 * stays out, unless it carries members of the turn before it.
 */
function withReasoning(turns: readonly Turn[], context: EncodeContext): Turn[][] {
  const all: Turn[][] = [];
  let reasoning: Turn[] = [];
  for (const turn of turns) {
    reasoning.push(turn);
    if (turn.parts.every(({ kind }) => kind.case === "reasoning")) continue;
    all.push(reasoning);
    reasoning = [];
  }
  const rest = reasoning.filter(isCarrier);
  all.at(-1)?.push(...rest);
  if (reasoning.length > rest.length) context.drop("turns.reasoning");
  return all;
}

function isCarrier({ parts }: Turn): boolean {
  return parts.some(
    ({ kind }) => kind.case === "reasoning" && carriedMembers(kind.value) !== undefined,
  );
}

type Speaker = Pick<Turn, "extras" | "name">;

function encodeSaid(
  parts: readonly Part[],
  { extras, name }: Speaker,
  context: EncodeContext,
): Wire[] {
  const { content, calls, members } = sort(parts, context);
  const isEmpty = content.length + calls.length + Object.keys(members).length === 0;
  if (isEmpty) return [];
  const message: Wire = {
    role: "assistant",
    content: content.length > 0 ? saidText(parts) : null,
    ...members,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(name && { name }),
  };
  context.writeExtras(message, extras);
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

/** The model's output, by its position in a message. */
interface MessageParts {
  readonly content: Piece[];
  readonly calls: Wire[];
  readonly members: Wire;
}

/** Members that return with a call. */
interface CarriedMembers {
  /** The id that the call had. */
  readonly id: string;
  /** Number of calls before it. */
  readonly next: number;
  readonly members: OpaqueMembers;
}

function sort(parts: readonly Part[], context: EncodeContext): MessageParts {
  const said: MessageParts = { content: [], calls: [], members: {} };
  const carried: CarriedMembers[] = [];
  for (const part of parts) {
    const { kind } = part;
    const own = kind.case === "reasoning" ? carriedMembers(kind.value) : undefined;
    if (own !== undefined) {
      if (own.callId === "") addMembers(said.members, own.members);
      else {
        const id = callId(own.callId, context);
        carried.push({ id, members: own.members, next: said.calls.length });
      }
    } else if (kind.case === "toolCall") said.calls.push(encodeCall(kind.value, part, context));
    else if (kind.case === "reasoning") addReasoning(said, encodeReasoning(kind.value, context));
    else if (kind.case === "opaque" && kind.value.type === "audio") {
      said.members["audio"] = encodeOpaque(kind.value, context);
    } else if (kind.case === "media") {
      throw invalid(
        "messages",
        "The model's vendor accepts no images or files in messages of the model",
      );
    } else append(said.content, encodePart(part, context));
  }
  for (const { id, members, next } of carried) {
    // Clients and styles may have changed the IDs: the members precede their call, or follow the
    // last one.
    const sameId = said.calls.find((each) => each["id"] === id);
    const call = sameId ?? said.calls[next] ?? said.calls.at(-1);
    if (call !== undefined) addMembers(call, members);
  }
  return said;
}

function addReasoning({ members }: MessageParts, added: Readonly<Record<string, string>>): void {
  for (const [member, text] of Object.entries(added)) {
    const before = members[member];
    members[member] = typeof before === "string" ? `${before}\n\n${text}` : text;
  }
}

function refusalText(piece: Piece): string {
  const refusal = piece instanceof JsonText ? "" : piece["refusal"];
  return typeof refusal === "string" ? refusal : "";
}
