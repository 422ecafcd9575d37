/**
 * Reads clients' parsed bodies by member. Every problem becomes a 400 that names the member;
 * members that were not read become extras.
 */
import type { Extra } from "../../gen/uas/inference/v1/conversation_pb.ts";
import { asBuffer } from "../core/bytes.ts";
import type { GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import { readOutline } from "./body-members.ts";
import { type LongTexts, parseBody } from "../wire/json/long-texts.ts";
import { type Member, type Outline, sliceElement, sliceText } from "../wire/json/outline.ts";
import { JsonSource, withoutSpace } from "../wire/json/source.ts";
import { isRecord, type JsonRecord } from "../wire/json/value.ts";
import { newExtra } from "./turns/parts.ts";

/**
 * Parses a request body; faster with its outline.
 *
 * @throws GatewayError INVALID_REQUEST if it is not one JSON object in UTF-8 within the depth
 * limit, or repeats a member. A repeated member could mean one thing here and another to the
 * vendor.
 */
export function parseObject(body: Uint8Array, outline?: Outline): JsonReader {
  const bytes = asBuffer(body);
  const known = outline ?? readOutline(bytes);
  const members = new Map<string, Member>();
  for (const member of known.members) {
    const { key } = member;
    if (members.has(key)) throw invalid(key, `"${key}" occurs twice in the body; send it once`);
    members.set(key, member);
  }
  const { record, texts } = parseBody(bytes, known.longTexts);
  return new JsonReader(record, undefined, { bytes, outline: known, members, texts });
}

/** Position of an object: a member of another object, or an element of a list there. */
interface Place {
  readonly parent: JsonReader;
  readonly name: string;
  readonly index: number | undefined;
}

/** The body as the client wrote it. */
interface Written {
  readonly bytes: Buffer;
  readonly outline: Outline;
  readonly members: ReadonlyMap<string, Member>;
  readonly texts: LongTexts | undefined;
}

/** Range of a number. */
export interface NumberRange {
  readonly min: number;
  readonly max: number;
}

/**
 * One object of a request body. Reading a member marks it as known; `extras` returns the others.
 * Null counts as absent. All readers throw GatewayError INVALID_REQUEST for a member of another
 * type; its `param` is the member's path, for example `messages[1].content[0].text`.
 */
export class JsonReader {
  /** For the body itself: its long texts, for {@link keepTexts}. */
  readonly longTexts: LongTexts | undefined;
  readonly #record: JsonRecord;
  readonly #place: Place | undefined;
  /** `undefined` for all but the body itself. */
  readonly #written: Written | undefined;
  /** Created on demand. */
  #source: JsonSource | undefined;
  /**
   * Names of present members that were read, without duplicates. A request may have many thousand
   * objects, most with fewer than six members; a Set for each was most of the garbage.
   */
  #read: string[] | "all" = [];
  #children: [string, JsonReader][] | undefined;

  /** @param place `undefined` for the body itself */
  constructor(record: JsonRecord, place?: Place, written?: Written) {
    this.#record = record;
    this.#place = place;
    this.#written = written;
    this.longTexts = written?.texts;
  }

  /** Path of the object; empty for the body itself. */
  get path(): string {
    if (this.#place === undefined) return "";
    const { parent, name, index } = this.#place;
    return parent.pathOf(index === undefined ? name : `${name}[${index}]`);
  }

  /** Path of a member. */
  pathOf(name: string): string {
    return [this.path, name].filter((step) => step !== "").join(".");
  }

  /** The error for a member, or for the object if no name is given. */
  invalid(message: string, name = ""): GatewayError {
    const path = this.pathOf(name);
    return path === "" ? invalid(undefined, message) : invalid(path, `"${path}" ${message}`);
  }

  /** Whether the member is there and not null. Does not mark it as known. */
  has(name: string): boolean {
    return this.#peek(name) !== undefined;
  }

  /** Any value; `undefined` if it is absent or null. */
  value(name: string): unknown {
    const value = this.#peek(name);
    if (value !== undefined && this.#read !== "all" && !this.#read.includes(name)) {
      this.#read.push(name);
    }
    return value;
  }

  #peek(name: string): unknown {
    // Most members are absent; only present ones pay for the ownership check.
    const value = this.#record[name] ?? undefined;
    return value !== undefined && Object.hasOwn(this.#record, name) ? value : undefined;
  }

  /** Marks all members as known. */
  readAll(): void {
    this.#read = "all";
  }

  /**
   * A member as JSON, as the client wrote it, without white space between tokens; empty if it is
   * absent.
   */
  json(name: string): string {
    return this.value(name) === undefined ? "" : this.#jsonOf(name);
  }

  #jsonOf(name: string): string {
    if (this.#written === undefined) return this.#sourceOf().memberText(this.#record, name);
    const { bytes, members } = this.#written;
    const member = members.get(name);
    return member === undefined ? "" : withoutSpace(sliceText(bytes, member));
  }

  /**
   * The text of the member or the element of the body that the object is in: no more of it is
   * searched.
   */
  #sourceOf(): JsonSource {
    if (this.#place === undefined) throw new Error("the body itself is read by its outline");
    const { parent, name, index } = this.#place;
    if (parent.#written === undefined) return parent.#sourceOf();
    return (this.#source ??= new JsonSource(parent.#slice(name, index), this.#record));
  }

  #slice(name: string, index: number | undefined): Uint8Array {
    const { bytes, outline, members } = this.#written as Written;
    const member = members.get(name);
    if (member === undefined) return bytes.subarray(0, 0);
    return index === undefined
      ? bytes.subarray(member.valueStart, member.valueEnd)
      : sliceElement(bytes, member, index, outline);
  }

  /** A string; empty if it is absent. */
  text(name: string): string {
    return this.optionalText(name) ?? "";
  }

  /** A string; `undefined` if it is absent. */
  optionalText(name: string): string | undefined {
    const value = this.value(name);
    if (value === undefined || typeof value === "string") return value;
    throw this.invalid("must be a string", name);
  }

  /** A string that must be there. It may be empty. */
  presentText(name: string): string {
    const text = this.optionalText(name);
    if (text === undefined) throw this.invalid("is missing", name);
    return text;
  }

  /** A string that must be there and not be empty. */
  requiredText(name: string): string {
    const value = this.value(name);
    if (typeof value === "string" && value !== "") return value;
    throw this.invalid("must be a non-empty string", name);
  }

  /** One of `words`; `undefined` if it is absent. */
  word<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const found = words.find((word) => word === value);
    if (found !== undefined) return found;
    throw this.invalid(`must be one of ${words.map((word) => `"${word}"`).join(", ")}`, name);
  }

  /** A flag; `undefined` if it is absent. */
  flag(name: string): boolean | undefined {
    const value = this.value(name);
    if (value === undefined || typeof value === "boolean") return value;
    throw this.invalid("must be true or false", name);
  }

  /** A number; `undefined` if it is absent. */
  number(name: string, { min, max }: NumberRange): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && value >= min && value <= max) return value;
    throw this.invalid(`must be a number from ${min} to ${max}`, name);
  }

  /** An integer, by default from 1 to 2³¹ − 1; `undefined` if it is absent. */
  count(name: string, { min = 1, max = 2 ** 31 - 1 }: Partial<NumberRange> = {}) {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
      return value;
    }
    throw this.invalid(`must be a whole number from ${min} to ${max}`, name);
  }

  /** A 64-bit integer, exact; `undefined` if it is absent. */
  int64(name: string): bigint | undefined {
    const text = this.json(name);
    if (text === "") return undefined;
    if (/^-?\d{1,19}$/.test(text)) {
      const value = BigInt(text);
      if (BigInt.asIntN(64, value) === value) return value;
    }
    throw this.invalid("must be a whole number of 64 bits", name);
  }

  /** An object; `undefined` if it is absent. */
  object(name: string): JsonReader | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!isRecord(value)) throw this.invalid("must be an object", name);
    const child = new JsonReader(value, { parent: this, name, index: undefined });
    (this.#children ??= []).push([name, child]);
    return child;
  }

  /** An object that must be there. */
  requiredObject(name: string): JsonReader {
    const object = this.object(name);
    if (object === undefined) throw this.invalid("is missing", name);
    return object;
  }

  /** Whether the member is an array. Does not mark it as known. */
  isArray(name: string): boolean {
    return Array.isArray(this.#record[name]);
  }

  /** Whether the member is an object. Does not mark it as known. */
  isObject(name: string): boolean {
    return isRecord(this.#record[name]);
  }

  /** Whether the member is a string. Does not mark it as known. */
  isText(name: string): boolean {
    return typeof this.#record[name] === "string";
  }

  /** An array of objects; empty if it is absent. */
  objects(name: string): JsonReader[] {
    return this.#array(name, "an array of objects").map((item, index) => {
      if (isRecord(item)) return new JsonReader(item, { parent: this, name, index });
      throw this.invalid("must be an object", `${name}[${index}]`);
    });
  }

  /** An array of strings; empty if it is absent. */
  texts(name: string): string[] {
    return this.#array(name, "an array of strings").map((item, i) => {
      if (typeof item === "string") return item;
      throw this.invalid("must be a string", `${name}[${i}]`);
    });
  }

  /** The whole object as JSON, as the client wrote it, without white space between tokens. */
  toJson(): string {
    return this.#written === undefined
      ? this.#sourceOf().textOf(this.#record)
      : withoutSpace(this.#written.bytes.toString("utf8"));
  }

  /** Members that were not read, for the contract's `extras`; then all are known. */
  extras(): Extra[] {
    const read = this.#read;
    if (read === "all") return [];
    const names = Object.keys(this.#record);
    // Read members are present and unique, so equal counts mean all were read.
    if (names.length === read.length) return [];
    const known = new Set(read);
    const extras: Extra[] = [];
    for (const name of names) {
      const value = known.has(name) ? undefined : this.#peek(name);
      if (value !== undefined) extras.push(newExtra(name, this.#jsonOf(name)));
    }
    // One by one, each would be searched for among those before.
    this.#read = "all";
    return extras;
  }

  /**
   * Like {@link extras}, including members of nested objects: `function.x` for `x` in `function`.
   */
  deepExtras(): Extra[] {
    const own = this.extras();
    if (this.#children === undefined) return own;
    const inner = this.#children.flatMap(([name, child]) =>
      child.deepExtras().map((extra) => ({ ...extra, name: `${name}.${extra.name}` })),
    );
    return [...own, ...inner];
  }

  #array(name: string, what: string): readonly unknown[] {
    const value = this.value(name);
    if (value === undefined) return [];
    if (Array.isArray(value)) return value as unknown[];
    throw this.invalid(`must be ${what}`, name);
  }
}
