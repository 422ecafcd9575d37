/** The request half of relaying chat completions. */
import { asBuffer } from "../../core/bytes.ts";
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import { invalid } from "../../core/validation.ts";
import {
  knownMembers,
  type Members,
  missing,
  pickMembers,
  readBoolean,
  readCount,
  readModel,
  readOutline,
  textOf,
  vendorBodies,
} from "../body-members.ts";
import type { LimitParameter, VendorModel } from "../codec.ts";
import type { ReadRequestOptions, TextRequest } from "../dialect.ts";
import { type Member, type Outline, sliceText } from "../../wire/json/outline.ts";
import { changeMembers } from "../../wire/json/source.ts";
import type { Edit } from "../../wire/json/splice.ts";
import { type TurnRules, turnEdits } from "../turns/relayed-turns.ts";
import { guardedChatMembers } from "./guard.ts";
import { wireCallId } from "./wire.ts";

/** First byte of `true`. */
const trueStart = 0x74;

const names = [
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "n",
  "best_of",
  ...guardedChatMembers,
];

const known = knownMembers(names);

const knownWithAliases = knownMembers(names, ["modelKey", "prompt"]);

const modelKeys = ["model"];

const modelKeysWithAliases = ["model", "modelKey"];

/** Implements {@link TextDialect.readRequest}. */
export function readChatRequest(body: Uint8Array, options: ReadRequestOptions): TextRequest {
  const bytes = asBuffer(body);
  const outline = readOutline(bytes);
  const { platformAliases: hasAliases } = options;
  const members = pickMembers(outline, hasAliases ? knownWithAliases : known);
  const model = readModel(bytes, members, ...(hasAliases ? modelKeysWithAliases : modelKeys));
  if (members.has("modelKey") && readModel(bytes, members, "modelKey") !== model) {
    throw invalid("modelKey", '"model" and "modelKey" name different models: send one of them');
  }
  requireMessages(bytes, members, hasAliases);
  // Always read: a route that always streams refuses invalid values like the others.
  const asksForStream = readBoolean(bytes, members, "stream");
  const stream = options.alwaysStream || asksForStream;
  const { forVendor, sizeFor } = vendorBodies(bytes, outline, (target) =>
    editsFor({ bytes, outline, members, stream, model }, target),
  );
  return {
    model,
    stream,
    wantsUsage: stream && includesUsage(bytes, members),
    maxOutputTokens: largest(
      readCount(bytes, members, "max_completion_tokens"),
      readCount(bytes, members, "max_tokens"),
    ),
    choices: readChoices(bytes, members),
    bytes: bytes.length,
    outline,
    forVendor,
    sizeFor,
  };
}

/**
 * Reads how many choices the vendor makes and returns. Some servers make more and return the best
 * of them: legacy completions can ask for that.
 */
function readChoices(bytes: Buffer, members: Members): number {
  const choices = readCount(bytes, members, "n", { max: 128 }) ?? 1;
  const made = readCount(bytes, members, "best_of", { max: 128 }) ?? 1;
  if (made > choices) {
    throw invalid("best_of", '"best_of" must not exceed "n": use /v1/completions, or leave it out');
  }
  return choices;
}

/**
 * Returns the larger limit if both names are present, because vendors differ in which one they
 * apply.
 */
function largest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

function requireMessages(bytes: Buffer, members: Members, hasAliases: boolean): void {
  const messages = members.get("messages");
  const prompt = members.get("prompt");
  if (prompt !== undefined) {
    if (messages !== undefined) {
      throw invalid("prompt", 'Send either "messages" or "prompt", not both');
    }
    if (bytes[prompt.valueStart] !== 0x22) throw invalid("prompt", '"prompt" must be a string');
  } else if (messages === undefined) {
    const keys = hasAliases ? ["messages", "prompt"] : ["messages"];
    throw missing(members, keys, "send an array with at least one message");
  } else if (bytes[messages.valueStart] !== 0x5b) {
    throw invalid("messages", '"messages" must be an array');
  }
}

function includesUsage(bytes: Buffer, members: Members): boolean {
  const text = textOf(bytes, members, "stream_options");
  if (text === undefined) return false;
  if (!text.startsWith("{")) throw invalid("stream_options", '"stream_options" must be an object');
  const options = JSON.parse(text) as Record<string, unknown>;
  return options["include_usage"] === true;
}

interface ReadBody {
  readonly bytes: Buffer;
  readonly outline: Outline;
  readonly members: Members;
  readonly stream: boolean;
  readonly model: string;
}

function editsFor(body: ReadBody, target: VendorModel): readonly Edit[] {
  const { model, limitParameter, quirks } = target;
  const edits = [...turnEdits(body.bytes, body.outline, { form, rules: rulesOf(quirks) })];
  addModelEdits(body, model, edits);
  if (limitParameter !== undefined) addLimitEdit(body, limitParameter, edits);
  addPromptEdit(body, edits);
  addStreamEdits(body, edits);
  return edits;
}

const form = { list: "messages", textType: "text" } as const;

function rulesOf({
  lateSystem = "in_place",
  developerRole = "accepted",
  callIds,
}: VendorQuirks = {}): TurnRules {
  const callId = (id: string): string => wireCallId(id, callIds);
  return { lateSystem, developerRole, ...(callIds === "alphanumeric_9" && { callId }) };
}

function addModelEdits(
  { outline, members, model }: ReadBody,
  vendorModel: string,
  edits: Edit[],
): void {
  const member = members.get("model");
  const alias = members.get("modelKey");
  if (member === undefined) {
    if (alias === undefined) return;
    const text = `"model":${JSON.stringify(vendorModel)}`;
    edits.push({ start: alias.keyStart, end: alias.valueEnd, text });
    return;
  }
  if (model !== vendorModel) {
    const text = JSON.stringify(vendorModel);
    edits.push({ start: member.valueStart, end: member.valueEnd, text });
  }
  // With both names, the vendor would refuse the unknown one.
  if (alias !== undefined) edits.push(removal(outline, alias));
}

/**
 * Sends the limit under the name that the vendor honours, also if only the other name has a value:
 * a vendor takes null for no limit. Where both names have one, each vendor finds its own.
 */
function addLimitEdit({ bytes, members }: ReadBody, name: LimitParameter, edits: Edit[]): void {
  const other = name === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const own = members.get(name);
  const limit = readCount(bytes, members, name);
  const otherLimit = readCount(bytes, members, other);
  const sent = members.get(other);
  if (own !== undefined && limit !== undefined) return addPlainNumber(bytes, own, limit, edits);
  if (sent === undefined || otherLimit === undefined) return;
  if (own === undefined) {
    edits.push({ start: sent.keyStart, end: sent.valueStart, text: `"${name}":` });
    return addPlainNumber(bytes, sent, otherLimit, edits);
  }
  edits.push({ start: own.valueStart, end: own.valueEnd, text: String(otherLimit) });
  edits.push({ start: sent.valueStart, end: sent.valueEnd, text: "null" });
}

/**
 * Writes a count in digits, if the client wrote `1e2` or `100.0`: some vendors do not read that as
 * a whole number.
 */
function addPlainNumber(bytes: Buffer, member: Member, count: number, edits: Edit[]): void {
  const text = String(count);
  if (sliceText(bytes, member) === text) return;
  edits.push({ start: member.valueStart, end: member.valueEnd, text });
}

/** Takes a member out together with the comma that joins it; there is at least one other member. */
function removal({ members }: Outline, member: Member): Edit {
  const at = members.indexOf(member);
  const before = members[at - 1];
  return before === undefined
    ? { start: member.keyStart, end: members[at + 1]?.keyStart ?? member.valueEnd, text: "" }
    : { start: before.valueEnd, end: member.valueEnd, text: "" };
}

function addPromptEdit({ bytes, members }: ReadBody, edits: Edit[]): void {
  const prompt = members.get("prompt");
  if (prompt === undefined) return;
  const text = `"messages":[{"role":"user","content":${sliceText(bytes, prompt)}}]`;
  edits.push({ start: prompt.keyStart, end: prompt.valueEnd, text });
}

/**
 * Streams if the route requires it, and requests usage in every stream, because billing needs it.
 */
function addStreamEdits({ bytes, outline, members, stream }: ReadBody, edits: Edit[]): void {
  if (!stream) return;
  let added = "";
  const flag = members.get("stream");
  if (flag === undefined) added = ',"stream":true';
  else if (bytes[flag.valueStart] !== trueStart) {
    edits.push({ start: flag.valueStart, end: flag.valueEnd, text: "true" });
  }
  const options = members.get("stream_options");
  if (options === undefined) added += ',"stream_options":{"include_usage":true}';
  else if (!includesUsage(bytes, members)) {
    const text = changeMembers(sliceText(bytes, options), { include_usage: "true" });
    edits.push({ start: options.valueStart, end: options.valueEnd, text });
  }
  if (added !== "") edits.push({ start: outline.end, end: outline.end, text: added });
}
