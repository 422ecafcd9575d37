/** Reads and edits single members of a request body by their position in its bytes. */
import { jsonDepthMax, jsonNumbersMax, jsonPartsMax } from "../core/limits.ts";
import { nearest } from "../core/suggest.ts";
import { asBuffer } from "../core/bytes.ts";
import type { GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import type { VendorModel } from "./codec.ts";
import type { TextRequest } from "./dialect.ts";
import {
  type BodySize,
  type Member,
  type Outline,
  scanObject,
  sliceText,
} from "../wire/json/outline.ts";
import { type Edit, Splicer } from "../wire/json/splice.ts";
import { JsonLimitError, JsonScanError } from "../wire/json/scan.ts";
import { textWeight } from "../wire/json/text-weight.ts";

/** The members that the gateway reads, by name. */
export interface Members extends ReadonlyMap<string, Member> {
  /** The names of all other members. Absent if unknown. */
  readonly unread?: readonly string[];
}

class PickedMembers extends Map<string, Member> implements Members {
  readonly unread: string[] = [];
}

/** Bodies of at least this length, in bytes, are not copied when they are edited. */
const largeBody = 64 * 1024;

const quote = 0x22;

/** The first byte of `null`. */
const nullStart = 0x6e;

const requestLimits = {
  depthMax: jsonDepthMax,
  partsMax: jsonPartsMax,
  numbersMax: jsonNumbersMax,
};

/**
 * The outline of a body. @throws GatewayError INVALID_REQUEST if it is no JSON object, or exceeds a
 * limit
 */
export function readOutline(bytes: Buffer): Outline {
  try {
    return scanObject(bytes, requestLimits);
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    const fault = error instanceof JsonLimitError ? "too complex" : "not valid JSON";
    throw invalid(undefined, `The body is ${fault}: ${error.message} at byte ${error.offset}`);
  }
}

/**
 * Picks the known members. A repeated member could mean one thing to the gateway and another to the
 * vendor. Some vendors' parsers also accept `Model` for `model`, so that allowlist, price and hold
 * would apply to another model.
 *
 * @throws GatewayError INVALID_REQUEST for both
 */
export function pickMembers(outline: Outline, known: KnownMembers): Members {
  const picked = new PickedMembers();
  for (const member of outline.members) {
    if (!known.names.has(member.key)) {
      if (known.lookalike.test(member.key)) {
        const meant = member.key.toLowerCase();
        throw invalid(member.key, `"${member.key}" is not known; did you mean "${meant}"?`);
      }
      picked.unread.push(member.key);
      continue;
    }
    if (picked.has(member.key)) {
      throw invalid(member.key, `"${member.key}" occurs twice in the body; send it once`);
    }
    picked.set(member.key, member);
  }
  return picked;
}

/** Maximum number of unknown names that are compared with a missing name. */
const comparedMax = 100;

/** The names that the gateway reads in a style, and their lookalikes. */
export interface KnownMembers {
  readonly names: ReadonlySet<string>;
  readonly lookalike: RegExp;
}

/**
 * @param names all lower case
 * @param aliases further names, of which no lookalikes are refused
 */
export function knownMembers(
  names: readonly string[],
  aliases: readonly string[] = [],
): KnownMembers {
  return {
    names: new Set([...names, ...aliases]),
    lookalike: new RegExp(`^(?:${names.join("|")})$`, "iu"),
  };
}

/** The model's name in the first of `keys` that is present. */
export function readModel(bytes: Buffer, members: Members, ...keys: readonly string[]): string {
  const key = keys.find((each) => members.has(each));
  const member = key === undefined ? undefined : members.get(key);
  if (member === undefined) {
    throw missing(members, keys, "name one of those that GET /v1/models lists");
  }
  const { valueStart, valueEnd } = member;
  const isString = bytes[valueStart] === quote;
  const model = isString ? bytes.toString("utf8", valueStart + 1, valueEnd - 1) : "";
  if (model === "") throw invalid(member.key, `"${member.key}" must be a non-empty string`);
  return model.includes("\\") ? (JSON.parse(`"${model}"`) as string) : model;
}

/**
 * The error for a required member that is missing. It names a member that may be a misspelling of
 * it instead.
 *
 * @param keys its names; the first is the usual one
 * @param advice what to send; empty means nothing to add
 */
export function missing(
  { unread = [] }: Pick<Members, "unread">,
  keys: readonly string[],
  advice: string,
): GatewayError {
  for (const name of unread.slice(0, comparedMax)) {
    const meant = nearest(name, keys);
    if (meant !== undefined && meant !== name) {
      return invalid(name, `"${name}" is not known; did you mean "${meant}"?`);
    }
  }
  const [key] = keys;
  return invalid(key, `"${key}" is missing${advice && `: ${advice}`}`);
}

/** A flag; false if it is absent or null. */
export function readBoolean(bytes: Buffer, members: Members, key: string): boolean {
  // The grammar was checked, so the first byte identifies the word.
  const first = firstByteOf(bytes, members, key);
  if (first === undefined || first === 0x66) return false;
  if (first === 0x74) return true;
  throw invalid(key, `"${key}" must be true or false`);
}

/** Range of an integer. Default: from 1 to 2³¹ − 1. */
interface CountRange {
  readonly min?: number;
  readonly max?: number;
}

/** An integer; `undefined` if it is absent or null. */
export function readCount(
  bytes: Buffer,
  members: Members,
  key: string,
  { min = 1, max = 2 ** 31 - 1 }: CountRange = {},
): number | undefined {
  const text = textOf(bytes, members, key);
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw invalid(key, `"${key}" must be a whole number from ${min} to ${max}`);
}

/** The member's JSON text; `undefined` if it is absent or null. */
export function textOf(bytes: Buffer, members: Members, key: string): string | undefined {
  const member = members.get(key);
  if (member === undefined || bytes[member.valueStart] === nullStart) return undefined;
  return sliceText(bytes, member);
}

/** The byte that the member's value begins with; `undefined` if it is absent or null. */
export function firstByteOf(bytes: Buffer, members: Members, key: string): number | undefined {
  const member = members.get(key);
  const byte = member && bytes[member.valueStart];
  return byte === nullStart ? undefined : byte;
}

/**
 * A body without the members of these names; the bytes of all others stay. @param members all of
 * them, in order
 */
export function withoutMembers(
  bytes: Buffer,
  members: readonly Member[],
  names: ReadonlySet<string>,
): Buffer {
  const kept = members.filter(({ key }) => !names.has(key));
  const pieces = kept.flatMap(({ keyStart, valueEnd }, at) => [
    Buffer.from(at === 0 ? "{" : ","),
    bytes.subarray(keyStart, valueEnd),
  ]);
  return Buffer.concat([
    ...(kept.length === 0 ? [Buffer.from("{")] : []),
    ...pieces,
    Buffer.from("}"),
  ]);
}

/** Applies edits to a body; returns pieces to send in order. */
export function applyEdits(bytes: Buffer, edits: readonly Edit[]): readonly Buffer[] {
  if (edits.length === 0) return [bytes];
  const sorted = edits.length === 1 ? edits : edits.toSorted((a, b) => a.start - b.start);
  if (bytes.length < largeBody) return [editedCopy(bytes, sorted)];
  const splicer = new Splicer();
  for (const { start, end, text } of sorted) splicer.replace(start, end, Buffer.from(text));
  return splicer.pieces(bytes);
}

/** Writes texts in place: a separate buffer for each would cost half of the whole edit. */
function editedCopy(bytes: Buffer, edits: readonly Edit[]): Buffer {
  let size = bytes.length;
  for (const { start, end, text } of edits) size += Buffer.byteLength(text) - (end - start);
  const target = Buffer.allocUnsafe(size);
  let read = 0;
  let written = 0;
  for (const { start, end, text } of edits) {
    if (start > read) written += bytes.copy(target, written, read, start);
    written += target.write(text, written);
    read = end;
  }
  bytes.copy(target, written, read);
  return target;
}

/** The body for a vendor and its size, {@link TextRequest}'s, computed from the same edits. */
export function vendorBodies(
  bytes: Buffer,
  { weight, media }: BodySize,
  editsFor: (target: VendorModel) => readonly Edit[],
): Pick<TextRequest, "forVendor" | "sizeFor"> {
  let last: VendorModel | undefined;
  let edits: readonly Edit[] = [];
  const known = (target: VendorModel): readonly Edit[] => {
    if (last !== target) edits = editsFor((last = target));
    return edits;
  };
  return {
    forVendor: (target, more) =>
      applyEdits(bytes, more === undefined ? known(target) : [...known(target), ...more]),
    sizeFor: (target) => ({
      media,
      weight: known(target).reduce((sum, edit) => sum + addedWeight(bytes, edit), weight),
    }),
  };
}

/** The weight that an edit adds. No media are in edited ranges. */
function addedWeight(bytes: Buffer, { start, end, text }: Edit): number {
  return textWeight(Buffer.from(text)) - textWeight(bytes, start, end);
}

/** A request body of which the gateway needs only the model and a few members. */
export interface ModelBody {
  /** The model as the customer named it. */
  readonly model: string;
  readonly bytes: Buffer;
  /**
   * The body for a vendor, in pieces to send in order, with another model name and otherwise the
   * same bytes.
   */
  forVendor(model: string): readonly Buffer[];
}

/**
 * Reads the model of a refused body, as far as possible, for its record.
 *
 * @param keys the members that may name it; the first one found counts
 * @returns empty if there is none
 */
export function namedModel(body: Uint8Array, keys: readonly string[]): string {
  try {
    const bytes = asBuffer(body);
    const { members } = readOutline(bytes);
    return readModel(bytes, new Map(members.map((member) => [member.key, member])), ...keys);
  } catch {
    return "";
  }
}

/** Options of {@link readModelBody}. */
export interface ModelBodyOptions {
  /** The model of a body that names none. Default: the body must name one. */
  readonly modelDefault?: string;
  /** Whether the required members may be an empty text or list. Default: the vendor says it. */
  readonly mayBeEmpty?: boolean;
}

/** A body that was read, with its size. */
export interface ReadModelBody extends ModelBody {
  readonly size: BodySize;
}

/**
 * Reads such a body.
 *
 * @param required required members besides `model`
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function readModelBody(
  body: Uint8Array,
  required: readonly string[],
  { modelDefault, mayBeEmpty = true }: ModelBodyOptions = {},
): ReadModelBody {
  const bytes = asBuffer(body);
  const size = readOutline(bytes);
  const members = pickMembers(size, knownMembers(["model", ...required]));
  // A misspelt name is an error, not another model.
  const others = members.unread?.slice(0, comparedMax);
  const isNamed = members.has("model") || others?.some((name) => nearest(name, ["model"]));
  const model =
    modelDefault === undefined || isNamed ? readModel(bytes, members, "model") : modelDefault;
  for (const name of required) {
    const json = textOf(bytes, members, name);
    if (json === undefined) throw missing(members, [name], "");
    if (!mayBeEmpty && emptyValue.test(json)) {
      throw invalid(name, `"${name}" must not be empty`);
    }
  }
  return { ...withModel(bytes, members, model), size };
}

/** An empty text or list, as JSON. */
const emptyValue = /^(?:""|\[\s*\])$/;

/** Such a body, from its members. @param model the value of `model` */
export function withModel(bytes: Buffer, members: Members, model: string): ModelBody {
  return {
    model,
    bytes,
    forVendor(vendorModel) {
      const member = members.get("model");
      const text = JSON.stringify(vendorModel);
      if (member === undefined) {
        // Other members are required, so one follows.
        const start = bytes.indexOf("{") + 1;
        return applyEdits(bytes, [{ start, end: start, text: `"model":${text},` }]);
      }
      if (vendorModel === model) return [bytes];
      const { valueStart: start, valueEnd: end } = member;
      return applyEdits(bytes, [{ start, end, text }]);
    },
  };
}

/** A required text. @throws GatewayError INVALID_REQUEST if it is missing, no text, or blank */
export function readText(bytes: Buffer, members: Members, key: string): string {
  const json = textOf(bytes, members, key);
  if (json === undefined) throw missing(members, [key], "");
  const value: unknown = JSON.parse(json);
  if (typeof value === "string" && value.trim() !== "") return value;
  throw invalid(key, `"${key}" must be a non-empty string`);
}
