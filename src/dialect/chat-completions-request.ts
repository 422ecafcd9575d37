/** The request half of chat completions. */
import { jsonDepthMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import type { ReadRequestOptions, TextRequest } from "./dialect.ts";
import {
  asBuffer,
  JsonScanError,
  type Member,
  type Outline,
  scanObject,
  sliceText,
} from "./json-scan.ts";
import { Splicer } from "./splice.ts";

/** The members that the gateway itself reads. Twice in one body, they could mean one thing to it and
 * another to the vendor. */
const readMembers = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "n",
]);
const aliasMembers = new Set(["modelKey", "prompt"]);

/** See {@link TextDialect.readRequest}. */
export function readChatRequest(body: Uint8Array, options: ReadRequestOptions): TextRequest {
  const bytes = asBuffer(body);
  const outline = readOutline(bytes);
  const members = pickMembers(outline, options.platformAliases);
  const model = readModel(bytes, members);
  requireMessages(bytes, members);
  // Read in any case: a route that always streams refuses nonsense like the others.
  const asksForStream = readBoolean(bytes, members, "stream");
  const stream = options.alwaysStream || asksForStream;
  return {
    model,
    stream,
    wantsUsage: stream && includesUsage(bytes, members),
    maxOutputTokens: largest(
      readCount(bytes, members, "max_completion_tokens"),
      readCount(bytes, members, "max_tokens"),
    ),
    choices: readCount(bytes, members, "n", 128) ?? 1,
    bytes: bytes.length,
    forVendor: (vendorModel) =>
      bodyForVendor({ bytes, outline, members, stream, model }, vendorModel),
  };
}

function readOutline(bytes: Buffer): Outline {
  try {
    return scanObject(bytes, jsonDepthMax);
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    throw invalid(`The body is not valid JSON: ${error.message} at byte ${error.offset}`);
  }
}

type Members = ReadonlyMap<string, Member>;

function pickMembers(outline: Outline, aliases: boolean): Members {
  const picked = new Map<string, Member>();
  for (const member of outline.members) {
    if (!readMembers.has(member.key) && !(aliases && aliasMembers.has(member.key))) {
      refuseLookalike(member.key);
      continue;
    }
    if (picked.has(member.key)) {
      throw invalid(`"${member.key}" stands twice in the body; send it once`, member.key);
    }
    picked.set(member.key, member);
  }
  return picked;
}

const lookalike = new RegExp(`^(?:${[...readMembers].join("|")})$`, "iu");

/** Some vendors' parsers take `Model` for `model`: the allowlist, the price and the hold would then be
 * those of another model. */
function refuseLookalike(key: string): void {
  if (!lookalike.test(key)) return;
  throw invalid(`"${key}" is not known; did you mean "${key.toLowerCase()}"?`, key);
}

/** The larger limit, where both names are there: nobody knows which one a vendor goes by. */
function largest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

function readModel(bytes: Buffer, members: Members): string {
  const member = members.get("model") ?? members.get("modelKey");
  if (member === undefined) {
    throw invalid('"model" is missing: name one of those that GET /v1/models lists', "model");
  }
  const model: unknown = JSON.parse(sliceText(bytes, member));
  if (typeof model !== "string" || model === "") {
    throw invalid(`"${member.key}" must be a non-empty string`, member.key);
  }
  return model;
}

function requireMessages(bytes: Buffer, members: Members): void {
  const messages = members.get("messages");
  const prompt = members.get("prompt");
  if (prompt !== undefined) {
    if (messages !== undefined) {
      throw invalid('Send either "messages" or "prompt", not both', "prompt");
    }
    if (bytes[prompt.valueStart] !== 0x22) throw invalid('"prompt" must be a string', "prompt");
  } else if (messages === undefined) {
    throw invalid('"messages" is missing: send an array with at least one message', "messages");
  } else if (bytes[messages.valueStart] !== 0x5b) {
    throw invalid('"messages" must be an array', "messages");
  }
}

function readBoolean(bytes: Buffer, members: Members, key: string): boolean {
  const text = textOf(bytes, members, key);
  if (text === undefined || text === "false") return false;
  if (text === "true") return true;
  throw invalid(`"${key}" must be true or false`, key);
}

function readCount(bytes: Buffer, members: Members, key: string, max = 2 ** 31 - 1) {
  const text = textOf(bytes, members, key);
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) {
    return value;
  }
  throw invalid(`"${key}" must be a whole number from 1 to ${max}`, key);
}

function includesUsage(bytes: Buffer, members: Members): boolean {
  const text = textOf(bytes, members, "stream_options");
  if (text === undefined) return false;
  if (!text.startsWith("{")) throw invalid('"stream_options" must be an object', "stream_options");
  const options = JSON.parse(text) as Record<string, unknown>;
  return options["include_usage"] === true;
}

/** The member's JSON text; `undefined` where it is absent or null. */
function textOf(bytes: Buffer, members: Members, key: string): string | undefined {
  const member = members.get(key);
  if (member === undefined) return undefined;
  const text = sliceText(bytes, member);
  return text === "null" ? undefined : text;
}

interface ReadBody {
  readonly bytes: Buffer;
  readonly outline: Outline;
  readonly members: Members;
  readonly stream: boolean;
  readonly model: string;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** From this length on, in bytes, a body is not copied to be edited. */
const largeBody = 64 * 1024;

function bodyForVendor(body: ReadBody, vendorModel: string): readonly Buffer[] {
  const edits = [...modelEdits(body, vendorModel), ...promptEdits(body), ...streamEdits(body)];
  const splicer = new Splicer();
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    splicer.replace(edit.start, edit.end, Buffer.from(edit.text));
  }
  const { bytes } = body;
  return bytes.length < largeBody ? [splicer.apply(bytes, bytes.length)] : splicer.pieces(bytes);
}

function modelEdits({ outline, members, model }: ReadBody, vendorModel: string): Edit[] {
  const member = members.get("model");
  const alias = members.get("modelKey");
  const value = JSON.stringify(vendorModel);
  if (member === undefined) {
    return alias ? [{ start: alias.keyStart, end: alias.valueEnd, text: `"model":${value}` }] : [];
  }
  const edits: Edit[] = [];
  if (model !== vendorModel) {
    edits.push({ start: member.valueStart, end: member.valueEnd, text: value });
  }
  // Both names are there: the vendor would refuse the one that it does not know.
  if (alias !== undefined) edits.push(removal(outline, alias));
  return edits;
}

/** Takes a member out together with the comma that joins it; there is at least one other member. */
function removal({ members }: Outline, member: Member): Edit {
  const at = members.indexOf(member);
  const before = members[at - 1];
  return before === undefined
    ? { start: member.keyStart, end: members[at + 1]?.keyStart ?? member.valueEnd, text: "" }
    : { start: before.valueEnd, end: member.valueEnd, text: "" };
}

function promptEdits({ bytes, members }: ReadBody): Edit[] {
  const prompt = members.get("prompt");
  if (prompt === undefined) return [];
  const text = `"messages":[{"role":"user","content":${sliceText(bytes, prompt)}}]`;
  return [{ start: prompt.keyStart, end: prompt.valueEnd, text }];
}

/** Streams where the route says so, and asks for usage in every stream: billing needs it. */
function streamEdits({ bytes, outline, members, stream }: ReadBody): Edit[] {
  if (!stream) return [];
  const added: string[] = [];
  const edits: Edit[] = [];
  const flag = members.get("stream");
  if (flag === undefined) added.push('"stream":true');
  else if (sliceText(bytes, flag) !== "true") {
    edits.push({ start: flag.valueStart, end: flag.valueEnd, text: "true" });
  }
  const options = members.get("stream_options");
  if (options === undefined) added.push('"stream_options":{"include_usage":true}');
  else if (!includesUsage(bytes, members)) {
    const given = JSON.parse(sliceText(bytes, options)) as Record<string, unknown> | null;
    const text = JSON.stringify({ ...given, include_usage: true });
    edits.push({ start: options.valueStart, end: options.valueEnd, text });
  }
  if (added.length > 0) {
    edits.push({ start: outline.end, end: outline.end, text: `,${added.join(",")}` });
  }
  return edits;
}

function invalid(message: string, param?: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, param === undefined ? {} : { param });
}
