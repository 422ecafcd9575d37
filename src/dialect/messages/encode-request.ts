/** The vendor's side of messages: what is asked for into a request body. */
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
import { invalid } from "../../core/validation.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";
import { type JsonBranch, JsonText, type JsonTree, writeJson } from "../json/json-tree.ts";
import { type JsonBody, LongTexts, textsOf } from "../json/long-texts.ts";
import { isRecord, type JsonRecord, parseRecord } from "../json/value.ts";
import { type Block, encodePart } from "./encode-content.ts";
import { EncodeContext } from "./encode-context.ts";
import { encodeReasoning, encodeSampling, refuseForeignExtras } from "./encode-settings.ts";
import { encodeTools } from "./encode-tools.ts";
import { traitsOf } from "./model-traits.ts";
import { writeServiceTier } from "./wire.ts";

/** What `max_tokens` is where neither the request nor the catalogue tells: the style demands it. */
const maxTokensDefault = 4096;

/** The newer version takes no sampling parameters, the older one all there is. */
const newVersion = "2026-10-21";

const oldVersion = "2023-06-01";

/** See {@link VendorCodec.encodeRequest}. */
export function encodeMessagesRequest(
  generation: Generation,
  target: RequestTarget,
): EncodedRequest {
  const writer = new EncodeContext(target.sourceDialect);
  if (!writer.isOwn) refuseForeignExtras(generation.extras);
  const conversation = generation.conversation ?? create(ConversationSchema);
  const { format, line } = encodeFormat(generation.responseFormat, writer);
  const { members, canThink } = encodeTurns(conversation.turns, line, writer);
  const maxTokens = generation.maxOutputTokens ?? (target.maxOutputTokens || maxTokensDefault);
  const traits = traitsOf(target.model);
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
    ...writeBody(withExtras(body, generation, writer), textsOf(generation)),
    headers: { "anthropic-version": version },
    dropped: writer.dropped,
  };
}

function writeBody(tree: JsonTree, texts: LongTexts | undefined): JsonBody {
  return (texts ?? new LongTexts()).write((hide) => writeJson(tree, hide));
}

/** Who asks, and in what class of service. */
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

/** Puts extras of this style back where they stood: a dot leads into a member that is an object. */
function withExtras(body: JsonBranch, { extras }: Generation, writer: EncodeContext): JsonBranch {
  const written: Record<string, JsonTree | undefined> = { ...body };
  for (const [path, value] of Object.entries(writer.extras(extras))) {
    const [name = "", inner] = splitPath(path);
    if (inner === undefined) written[name] = value;
    else written[name] = { ...(written[name] as JsonBranch | undefined), [inner]: value };
  }
  return written;
}

const parents = ["metadata", "output_config", "tool_choice"];

/** Other members may have a dot in their name. */
function splitPath(path: string): string[] {
  const parent = parents.find((name) => path.startsWith(`${name}.`));
  return parent === undefined ? [path] : [parent, path.slice(parent.length + 1)];
}

/** A message while it grows: turns of one role that follow each other become one. */
interface Message {
  readonly role: "user" | "assistant" | "system";
  readonly blocks: Block[];
  /** The whole content, where it came as one string. */
  plain: string | undefined;
  readonly extras: JsonBranch[];
}

/** What the turns become. */
interface EncodedTurns {
  /** The members `system` and `messages`. */
  readonly members: JsonBranch;
  /** Whether the vendor can think on: the turn that it is to go on with begins with its own reasoning,
   * or it begins a new one. */
  readonly canThink: boolean;
}

const words: ReadonlyMap<Role, Message["role"]> = new Map([
  [Role.SYSTEM, "system"],
  [Role.USER, "user"],
  [Role.ASSISTANT, "assistant"],
]);

/**
 * @param addition a line that is added to the system text. Empty: none
 */
function encodeTurns(
  turns: readonly Turn[],
  addition: string,
  writer: EncodeContext,
): EncodedTurns {
  const first = turns.findIndex(({ role }) => role !== Role.SYSTEM);
  const head = first < 0 ? turns : turns.slice(0, first);
  const system = encodeSystem(head, addition, writer);
  const messages = new MessageList();
  for (const turn of turns.slice(head.length)) messages.add(encodeTurn(turn, writer));
  const list = messages.finish();
  if (list.length === 0) {
    throw invalid("messages", "The conversation has no message with content: send at least one");
  }
  return {
    members: { ...(system !== undefined && { system }), messages: list.map(writeMessage) },
    canThink: endsWithThought(list),
  };
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

/** What the newer version of the wire refuses: citations by users, documents by the model. */
function isOldOnly(role: Message["role"], { kind }: Part): boolean {
  if (role === "assistant") return kind.case === "media";
  return kind.case === "text" && kind.value.citations.length > 0;
}

/** The text of a turn that is nothing but one text. */
function plainText(parts: readonly Part[]): string | undefined {
  const [part] = parts;
  if (part?.kind.case !== "text" || parts.length > 1) return undefined;
  const { cacheHint, extras, kind } = part;
  return cacheHint === undefined && extras.length === 0 ? kind.value.text : undefined;
}

/** What stands before the first message: one string where it came as one, otherwise blocks. */
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

/** Messages in the order and grouping that the style demands. */
class MessageList {
  readonly #list: Message[] = [];
  /** The calls of the last assistant message that have no result yet. */
  readonly #open = new Set<string>();
  /** System messages that came between calls and their results, where the style allows none. */
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

  finish(): readonly Message[] {
    this.#flush();
    for (const { role, blocks } of this.#list) if (role === "user") sortResultsFirst(blocks);
    return this.#list;
  }

  /** System messages never stand at the very beginning: those of the beginning are the system text. */
  #flush(): void {
    // Most messages find nothing here, and emptying what is empty makes garbage.
    if (this.#open.size > 0) this.#open.clear();
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const message of waiting) this.#append(message);
  }

  #append(message: Message): void {
    const last = this.#list.at(-1);
    if (last?.role !== message.role) {
      this.#list.push(message);
      return;
    }
    last.blocks.push(...message.blocks);
    last.extras.push(...message.extras);
    last.plain = undefined;
  }
}

/** All results of a turn stand at the beginning of the message that follows it. */
function sortResultsFirst(blocks: Block[]): void {
  if (blocks.length < 2) return;
  const rank = ({ type }: Block): number => (type === "tool_result" ? 0 : 1);
  blocks.sort((a, b) => rank(a) - rank(b));
}

/** While it thinks, the vendor wants its own reasoning back at the start of a turn that it is to go on with:
 * `Expected thinking or redacted_thinking, but found tool_use`. */
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
  return extras.length === 0
    ? { role, content }
    : (Object.assign({ role, content }, ...extras) as JsonBranch);
}

/** What is said to the model where any JSON object is asked for: the style has no such form. */
const jsonLine =
  "Answer with one valid JSON object and nothing else: no text around it, no code fence.";

/** What the style knows of a form. */
interface EncodedFormat {
  /** `output_config.format`; `undefined`: not said. */
  readonly format: JsonBranch | undefined;
  /** A line for the system text. Empty: none. */
  readonly line: string;
}

/** The form of the reply. @throws GatewayError INVALID_REQUEST for a schema that is none */
function encodeFormat(format: ResponseFormat | undefined, writer: EncodeContext): EncodedFormat {
  switch (format?.type) {
    case ResponseFormatType.JSON_OBJECT:
      return { format: undefined, line: jsonLine };
    case ResponseFormatType.JSON_SCHEMA: {
      // A schema's name has no effect on the reply, so that nothing is lost with it.
      if (format.description !== "") writer.drop("response_format.description");
      const schema = new JsonText(closedSchema(format.schemaJson, writer));
      return { format: { type: "json_schema", schema }, line: "" };
    }
    case ResponseFormatType.TEXT:
    case ResponseFormatType.UNSPECIFIED:
    case undefined:
    default:
      return { format: undefined, line: "" };
  }
}

/** The vendor refuses schemas of objects that do not say `additionalProperties: false`. */
function closedSchema(json: string, writer: EncodeContext): string {
  const schema = parseRecord(json);
  if (schema === undefined) {
    throw invalid("response_format", "The schema of the response format must be a JSON object");
  }
  if (writer.isOwn) return json;
  const closed = close(schema);
  return closed === schema ? json : JSON.stringify(closed);
}

/** The very value where nothing is missing in it. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(close);
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  if (!isRecord(value)) return value;
  const closed: Record<string, unknown> = {};
  let isChanged = false;
  for (const [name, member] of Object.entries(value)) {
    closed[name] = keptAsIs.has(name) ? member : close(member);
    if (closed[name] !== member) isChanged = true;
  }
  if (isOpenObject(value)) {
    closed["additionalProperties"] = false;
    isChanged = true;
  }
  return isChanged ? closed : value;
}

/** What is no schema but a value. */
const keptAsIs: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"]);

/** A property may be called `type`, too: only its word tells. */
function isOpenObject(value: JsonRecord): boolean {
  return value["type"] === "object" && !("additionalProperties" in value);
}
