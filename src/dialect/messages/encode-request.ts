/** Encodes a request for a vendor. */
import { create } from "@bufbuild/protobuf";
import {
  ConversationSchema,
  type Part,
  Role,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Generation,
  type ResponseFormat,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { append } from "../../core/append.ts";
import { invalid } from "../../core/validation.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";
import { portableTurns } from "../turns/portable-turns.ts";
import { type JsonBranch, JsonText, type JsonTree } from "../../wire/json/json-tree.ts";
import { jsonBody, textsOf } from "../../wire/json/long-texts.ts";
import {
  type JsonMember,
  listElements,
  objectMembers,
  withoutSpace,
  writeMembers,
} from "../../wire/json/source.ts";
import { parseRecord, setMember } from "../../wire/json/value.ts";
import { placeSystem } from "../turns/system-turns.ts";
import { type Block, encodePart } from "./encode-content.ts";
import { EncodeContext } from "./encode-context.ts";
import { encodeReasoning, encodeSampling, refuseForeignExtras } from "./encode-settings.ts";
import { encodeTools } from "./encode-tools.ts";
import { writeServiceTier } from "./wire.ts";

/** Value of `max_tokens` if neither request nor catalogue has one; the style requires it. */
const maxTokensDefault = 4096;

/** The newer API version accepts no sampling parameters, the older one accepts all. */
const newVersion = "2026-10-21";

const oldVersion = "2023-06-01";

/** Implements {@link VendorCodec.encodeRequest}. */
export function encodeMessagesRequest(
  generation: Generation,
  target: RequestTarget,
): EncodedRequest {
  const writer = new EncodeContext(target);
  if (!writer.isOwn) refuseForeignExtras(generation.extras);
  const conversation = generation.conversation ?? create(ConversationSchema);
  const { format, line } = encodeFormat(generation.responseFormat, writer);
  const { members, canThink } = encodeTurns(conversation.turns, line, writer);
  const maxTokens = generation.maxOutputTokens ?? (target.maxOutputTokens || maxTokensDefault);
  const { traits } = writer;
  const reasoning = encodeReasoning({ generation, traits, maxTokens, canThink, writer });
  const { thinking, effort, isOn } = reasoning;
  const config = { ...(effort && { effort }), ...(format && { format }) };
  const body = {
    model: target.model,
    max_tokens: maxTokens,
    ...members,
    ...encodeTools(conversation, writer),
    ...(thinking && { thinking }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
    ...encodeSampling(generation, { thinks: isOn, takes: traits.sampling }, writer),
    ...encodeIdentity(generation, writer),
    ...(target.stream && { stream: true }),
  };
  const version = writer.needsOldVersion ? oldVersion : newVersion;
  return {
    ...jsonBody(withExtras(body, generation, writer), textsOf(generation)),
    headers: { "anthropic-version": version },
    dropped: writer.dropped,
  };
}

/** The end user and the service tier. */
function encodeIdentity(generation: Generation, writer: EncodeContext): JsonBranch {
  const { endUser, serviceTier, cacheKey } = generation;
  if (cacheKey !== "") writer.drop("cache_key");
  const tier = writeServiceTier(serviceTier);
  if (tier === undefined && serviceTier !== "") writer.drop("service_tier");
  return {
    ...(endUser !== "" && { metadata: { user_id: endUser } }),
    ...(tier !== undefined && { service_tier: tier }),
  };
}

/** Restores extras of this style; a dot in the name leads into an object member. */
function withExtras(body: JsonBranch, { extras }: Generation, writer: EncodeContext): JsonBranch {
  const written: Record<string, JsonTree | undefined> = { ...body };
  // Copied once for all extras in them.
  const copies = new Map<string, Record<string, JsonTree | undefined>>();
  for (const [path, value] of Object.entries(writer.extras(extras))) {
    const [name = "", inner] = splitPath(path);
    if (inner === undefined) {
      setMember(written, name, value);
      continue;
    }
    const copy = copies.get(name) ?? { ...(written[name] as JsonBranch | undefined) };
    copies.set(name, copy);
    written[name] = copy;
    setMember(copy, inner, value);
  }
  return written;
}

const parents = ["metadata", "output_config", "tool_choice"];

/** Other names may contain a dot. */
function splitPath(path: string): string[] {
  const parent = parents.find((name) => path.startsWith(`${name}.`));
  return parent === undefined ? [path] : [parent, path.slice(parent.length + 1)];
}

/** A message being built: consecutive turns of one role are merged. */
interface Message {
  readonly role: "user" | "assistant" | "system";
  readonly blocks: Block[];
  /** The whole content, if it was one string. */
  plain: string | undefined;
  readonly extras: JsonBranch[];
}

/** The encoded turns. */
interface EncodedTurns {
  /** The members `system` and `messages`. */
  readonly members: JsonBranch;
  /**
   * Whether thinking is possible: the turn to continue begins with the vendor's own reasoning, or
   * is a new one.
   */
  readonly canThink: boolean;
}

const words: ReadonlyMap<Role, Message["role"]> = new Map([
  [Role.SYSTEM, "system"],
  [Role.USER, "user"],
  [Role.ASSISTANT, "assistant"],
]);

/** @param addition a line for the system text; empty for none */
function encodeTurns(
  given: readonly Turn[],
  addition: string,
  writer: EncodeContext,
): EncodedTurns {
  const turns = placeSystem(writer.isOwn ? given : portable(given, writer), writer.lateSystem);
  const first = turns.findIndex(({ role }) => role !== Role.SYSTEM);
  const head = first < 0 ? turns : turns.slice(0, first);
  const system = encodeSystem(head, addition, writer);
  const messages = new MessageList();
  for (const turn of turns.slice(head.length)) messages.add(encodeTurn(turn, writer));
  const list = messages.finish(writer.isOwn);
  if (list.length === 0) {
    throw invalid("messages", "The conversation has no message with content: send at least one");
  }
  const isFollowed = writer.refusesPrefill || given.at(-1)?.role !== Role.ASSISTANT;
  if (!writer.isOwn && isFollowed) addContinuation(list);
  return {
    members: { ...(system !== undefined && { system }), messages: list.map(writeMessage) },
    canThink: endsWithThought(list),
  };
}

function portable(turns: readonly Turn[], writer: EncodeContext): readonly Turn[] {
  const { quirks } = writer;
  const drop = (name: string): void => writer.drop(name);
  const written = portableTurns(turns, { dialect: Dialect.MESSAGES, drop, quirks });
  const isContinued = quirks.blankText === "refused" && !writer.refusesPrefill;
  return isContinued ? withoutEndSpace(written) : written;
}

/** The user's message behind a final message of the assistant, if the model begins a new one. */
const continuation = "Continue.";

/**
 * Lets a message of the user follow a final message of the assistant, for a model that does not
 * continue it.
 */
function addContinuation(list: Message[]): void {
  const last = list.at(-1);
  if (last?.role !== "assistant" || last.blocks.at(-1)?.type === "tool_use") return;
  const json = { type: "text", text: continuation };
  const blocks: Block[] = [{ type: "other", json, id: "" }];
  list.push({ role: "user", blocks, plain: continuation, extras: [] });
}

/** The vendor refuses white space at the end of a message that it is to continue. */
function withoutEndSpace(turns: readonly Turn[]): readonly Turn[] {
  const last = turns.at(-1);
  const part = last?.parts.at(-1);
  if (last?.role !== Role.ASSISTANT || part?.kind.case !== "text") return turns;
  const { value } = part.kind;
  const text = value.text.trimEnd();
  if (text === value.text) return turns;
  const written: Part = { ...part, kind: { case: "text", value: { ...value, text } } };
  return [...turns.slice(0, -1), { ...last, parts: [...last.parts.slice(0, -1), written] }];
}

function encodeTurn(turn: Turn, writer: EncodeContext): Message {
  const { parts, plain, extras, name } = turn;
  const role = words.get(turn.role);
  if (role === undefined) throw invalid("messages", "A message has no role");
  if (name !== "") writer.drop("turns.name");
  if (parts.some((part) => isOldOnly(role, part))) writer.needsOldVersion = true;
  const blocks: Block[] = [];
  for (const part of parts) {
    const block = encodePart(part, writer);
    if (block !== undefined) blocks.push(block);
  }
  return {
    role,
    blocks,
    plain: plain && blocks.length > 0 ? plainText(parts) : undefined,
    extras: extras.length === 0 ? [] : [writer.extras(extras)],
  };
}

/** Content that the newer API version refuses: citations by users, documents by the model. */
function isOldOnly(role: Message["role"], { kind }: Part): boolean {
  if (role === "assistant") return kind.case === "media";
  return kind.case === "text" && kind.value.citations.length > 0;
}

/** The text of a turn with a single text. */
function plainText(parts: readonly Part[]): string | undefined {
  const [part] = parts;
  if (part?.kind.case !== "text" || parts.length > 1) return undefined;
  const { cacheHint, extras, kind } = part;
  return cacheHint === undefined && extras.length === 0 ? kind.value.text : undefined;
}

/** The system text: a string if it came as one, otherwise blocks. */
function encodeSystem(
  turns: readonly Turn[],
  addition: string,
  writer: EncodeContext,
): JsonTree | undefined {
  const messages = turns.map((turn) => encodeTurn(turn, writer));
  const [only, ...rest] = messages.filter(({ blocks }) => blocks.length > 0);
  if (only === undefined) return addition === "" ? undefined : addition;
  if (rest.length === 0 && only.plain !== undefined && addition === "") return only.plain;
  const blocks = [only, ...rest].flatMap((message) => message.blocks.map(({ json }) => json));
  return addition === "" ? blocks : [...blocks, { type: "text", text: addition }];
}

/** Messages in the order and grouping that the style requires. */
class MessageList {
  readonly #list: Message[] = [];
  /** Calls of the last assistant message without a result. */
  readonly #open = new Set<string>();
  /** System messages between calls and their results, if the style allows none. */
  #waiting: Message[] = [];

  add(message: Message): void {
    if (message.blocks.length === 0) return;
    if (message.role === "system" && this.#open.size > 0) {
      this.#waiting.push(message);
      return;
    }
    if (message.role === "assistant") this.#flush();
    this.#append(message);
    for (const { type, id } of message.blocks) {
      if (type === "tool_use") this.#open.add(id);
      if (type === "tool_result") this.#open.delete(id);
    }
    if (this.#open.size === 0) this.#flush();
  }

  /** @param isOwn whether system messages stay wherever the client put them */
  finish(isOwn: boolean): Message[] {
    this.#flush();
    const list = isOwn ? this.#list : withLegalSystem(this.#list);
    for (const { role, blocks } of list) if (role === "user") sortResultsFirst(blocks);
    return list;
  }

  /** Messages never begin with a system message; those are in the system text. */
  #flush(): void {
    // Most messages find it empty; clearing an empty array creates garbage.
    if (this.#open.size > 0) this.#open.clear();
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const message of waiting) this.#append(message);
  }

  #append(message: Message): void {
    addMessage(this.#list, message);
  }
}

/** Adds a message to the last one if both have the same role. */
function addMessage(list: Message[], message: Message): void {
  const last = list.at(-1);
  if (last?.role !== message.role) {
    list.push(message);
    return;
  }
  append(last.blocks, message.blocks);
  append(last.extras, message.extras);
  last.plain = undefined;
}

/**
 * The vendor takes a system message only behind a message of the user, and last or before one of
 * the assistant. At any other place it becomes the user's text.
 */
function withLegalSystem(list: Message[]): Message[] {
  if (!list.some(({ role }) => role === "system")) return list;
  const legal: Message[] = [];
  for (const [index, message] of list.entries()) {
    const next = list[index + 1];
    const isLegal =
      message.role !== "system" || (legal.at(-1)?.role === "user" && next?.role !== "user");
    addMessage(legal, isLegal ? message : { ...message, role: "user" });
  }
  return legal;
}

/** Moves all results to the beginning of the message that follows the calls. */
function sortResultsFirst(blocks: Block[]): void {
  if (blocks.length < 2) return;
  const rank = ({ type }: Block): number => (type === "tool_result" ? 0 : 1);
  blocks.sort((a, b) => rank(a) - rank(b));
}

/**
 * While thinking, the vendor requires its own reasoning at the start of a turn to continue:
 * `Expected thinking or redacted_thinking, but found tool_use`.
 */
function endsWithThought(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role !== "system");
  const goesOn =
    last?.role === "assistant" || last?.blocks.some(({ type }) => type === "tool_result");
  if (!goesOn) return true;
  const turn = messages.findLast(({ role }) => role === "assistant");
  return turn === undefined || turn.blocks[0]?.type === "thinking";
}

function writeMessage({ role, blocks, plain, extras }: Message): JsonBranch {
  const content = plain ?? blocks.map(({ json }) => json);
  const message: JsonBranch = { role, content };
  for (const members of extras) Object.assign(message, members);
  return message;
}

/** The instruction to return any JSON object, for which the style has no member. */
const jsonLine =
  "Answer with one valid JSON object and nothing else: no text around it, no code fence.";

/** The encoded response format. */
interface EncodedFormat {
  /** `output_config.format`; `undefined` for none. */
  readonly format: JsonBranch | undefined;
  /** A line for the system text; empty for none. */
  readonly line: string;
}

/** Encodes the response format. @throws GatewayError INVALID_REQUEST for an invalid schema */
function encodeFormat(format: ResponseFormat | undefined, writer: EncodeContext): EncodedFormat {
  switch (format?.type) {
    case ResponseFormatType.JSON_OBJECT:
      return { format: undefined, line: jsonLine };
    case ResponseFormatType.JSON_SCHEMA: {
      // The schema's name has no effect on the reply, so nothing is lost without it.
      if (format.description !== "") writer.drop("response_format.description");
      const schema = new JsonText(closedSchema(withoutSpace(format.schemaJson), writer));
      return { format: { type: "json_schema", schema }, line: "" };
    }
    case ResponseFormatType.TEXT:
    case ResponseFormatType.UNSPECIFIED:
    case undefined:
    default:
      return { format: undefined, line: "" };
  }
}

/** Adds `additionalProperties: false` to object schemas; the vendor refuses others. */
function closedSchema(json: string, writer: EncodeContext): string {
  if (parseRecord(json) === undefined) {
    throw invalid("response_format", "The schema of the response format must be a JSON object");
  }
  return writer.isOwn ? json : close(json);
}

/** The same text, but for what is missing in it. */
function close(json: string): string {
  if (json.startsWith("[")) return `[${listElements(json).map(close).join(",")}]`;
  if (!json.startsWith("{")) return json;
  const members = objectMembers(json).map((member) =>
    keptAsIs.has(member.name) ? member : { ...member, json: close(member.json) },
  );
  if (isOpenObject(members)) members.push({ name: "additionalProperties", json: "false" });
  return writeMembers(members);
}

/** Members that contain values rather than schemas. */
const keptAsIs: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"]);

/** Only its value distinguishes a property called `type`. */
function isOpenObject(members: readonly JsonMember[]): boolean {
  const type = members.findLast(({ name }) => name === "type")?.json ?? "null";
  return (
    JSON.parse(type) === "object" && !members.some(({ name }) => name === "additionalProperties")
  );
}
