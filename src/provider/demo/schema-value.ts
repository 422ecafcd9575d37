/** Only demo: it writes JSON itself. Values that a JSON Schema accepts, by construction: nothing is evaluated. */
import { isRecord, type JsonRecord, recordAt } from "../../wire/json/value.ts";
import { refuse } from "./request.ts";

/** What values are made from. */
interface Source {
  /** The schema with the definitions. */
  readonly root: JsonRecord;
  /** What the user said: the usual text. */
  readonly text: string;
  /** The member of the request that has the schema, for refusals. */
  readonly param: string;
}

const depthMax = 32;

/** The longest list or text that is made because a schema requires it. */
const lengthMax = 1_000;

/**
 * A value that the schema accepts. The same schema and text give the same value.
 *
 * @throws DemoRequestError where the schema asks for something that is not understood
 */
export function valueOf(schema: unknown, source: Omit<Source, "root">): unknown {
  const root = isRecord(schema) ? schema : {};
  return build(schema, { ...source, root }, 0);
}

function build(schema: unknown, source: Source, depth: number): unknown {
  if (depth > depthMax) throw refuse(source.param, "the schema has no end; make a part optional");
  if (schema === false) throw refuse(source.param, "no value can fit the schema `false`");
  if (!isRecord(schema)) return source.text;
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["enum"])) return (schema["enum"] as unknown[])[0];
  if (typeof schema["$ref"] === "string") {
    return build(resolve(schema["$ref"], source), source, depth + 1);
  }
  const choices = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(choices))
    return build({ ...rest(schema), ...shallowest(choices) }, source, depth + 1);
  const parts = schema["allOf"];
  if (Array.isArray(parts)) return build(merged(rest(schema), parts, source), source, depth + 1);
  return buildTyped(schema, source, depth);
}

function buildTyped(schema: JsonRecord, source: Source, depth: number): unknown {
  switch (typeOf(schema)) {
    case "object":
      return buildObject(schema, source, depth);
    case "array":
      return buildArray(schema, source, depth);
    case "integer":
      return numberOf(schema, source, true);
    case "number":
      return numberOf(schema, source, false);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return stringOf(schema, source);
  }
}

/** The type; of several the first that is not null. */
function typeOf({ type, properties, items }: JsonRecord): unknown {
  if (Array.isArray(type)) return (type as unknown[]).find((each) => each !== "null") ?? "null";
  return type ?? (properties ? "object" : items ? "array" : "string");
}

/** A schema without its alternatives. */
function rest({ anyOf: _any, oneOf: _one, allOf: _all, ...others }: JsonRecord): JsonRecord {
  return others;
}

/** The alternative that certainly ends: one that refers to no other schema, where there is one. */
function shallowest(choices: readonly unknown[]): JsonRecord {
  const records = choices.filter(isRecord);
  const plain = records.find(({ type }) => type !== undefined && type !== "null");
  return plain ?? records[0] ?? {};
}

function merged(base: JsonRecord, parts: readonly unknown[], source: Source): JsonRecord {
  let all = base;
  for (const part of parts.filter(isRecord)) {
    const { $ref: reference } = part;
    const own = typeof reference === "string" ? resolve(reference, source) : part;
    all = {
      ...all,
      ...own,
      properties: { ...recordAt(all, "properties"), ...recordAt(own, "properties") },
      required: [...listOf(all["required"]), ...listOf(own["required"])],
    };
  }
  return all;
}

function resolve(reference: string, { root, param }: Source): JsonRecord {
  let at: unknown = root;
  for (const name of reference.replace(/^#\/?/, "").split("/").filter(Boolean)) {
    at = isRecord(at) ? at[name.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  }
  if (isRecord(at)) return at;
  throw refuse(param, `there is no schema at ${reference}`);
}

function buildObject(schema: JsonRecord, source: Source, depth: number): JsonRecord {
  const properties = recordAt(schema, "properties") ?? {};
  const required = new Set(listOf(schema["required"]));
  const names = Object.keys(properties).filter(
    // An optional member may contain the schema itself.
    (name) =>
      required.has(name) || (depth === 0 && required.size === 0 && !refers(properties[name])),
  );
  const missing = [...required].filter((name) => typeof name === "string" && !(name in properties));
  return Object.fromEntries([
    ...names.map((name) => [name, build(properties[name], source, depth + 1)]),
    ...missing.map((name) => [name, source.text]),
  ]) as JsonRecord;
}

function refers(schema: unknown): boolean {
  return JSON.stringify(schema).includes('"$ref"');
}

function buildArray(schema: JsonRecord, source: Source, depth: number): readonly unknown[] {
  const first = listOf(schema["prefixItems"]).map((each) => build(each, source, depth + 1));
  const least = Number(schema["minItems"] ?? 0);
  const most = Number(schema["maxItems"] ?? lengthMax);
  if (least > lengthMax) throw refuse(source.param, `minItems must be at most ${lengthMax}`);
  const length = Math.min(most, Math.max(least, first.length, refers(schema) ? 0 : 1));
  if (schema["uniqueItems"] === true && length > 1) {
    throw refuse(source.param, "the demo vendor makes no lists of several different items");
  }
  const others = Array.from({ length: Math.max(0, length - first.length) }, () =>
    build(schema["items"] ?? {}, source, depth + 1),
  );
  return [...first, ...others].slice(0, most);
}

function numberOf(schema: JsonRecord, { text, param }: Source, isWhole: boolean): number {
  const bound = (name: string, otherwise: number) =>
    typeof schema[name] === "number" ? schema[name] : otherwise;
  const step = bound("multipleOf", isWhole ? 1 : 0);
  const gap = step || 1e-6;
  const least = Math.max(bound("minimum", -Infinity), bound("exclusiveMinimum", -Infinity) + gap);
  const most = Math.min(bound("maximum", Infinity), bound("exclusiveMaximum", Infinity) - gap);
  const said = Number(/-?\d+/.exec(text)?.[0] ?? 1);
  const wanted = Math.min(most, Math.max(least, said));
  const value = step > 0 ? Math.ceil(Math.max(least, wanted - step) / step) * step : wanted;
  if (value >= least && value <= most) return value;
  throw refuse(param, "no number is within the bounds of the schema");
}

const formats: ReadonlyMap<string, string> = new Map([
  ["date-time", "2026-01-31T12:00:00Z"],
  ["date", "2026-01-31"],
  ["time", "12:00:00Z"],
  ["duration", "PT1H"],
  ["email", "demo@example.com"],
  ["hostname", "example.com"],
  ["ipv4", "192.0.2.1"],
  ["ipv6", "2001:db8::1"],
  ["uri", "https://example.com/"],
  ["url", "https://example.com/"],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
]);

function stringOf({ format, pattern, minLength, maxLength }: JsonRecord, source: Source): string {
  if (typeof pattern === "string") return textOfPattern(pattern, source.param);
  const known = typeof format === "string" ? formats.get(format) : undefined;
  if (known !== undefined) return known;
  const least = Number(minLength ?? 0);
  if (least > lengthMax) throw refuse(source.param, `minLength must be at most ${lengthMax}`);
  const characters = Array.from(source.text.padEnd(least, "."));
  return characters.slice(0, Math.max(least, Number(maxLength ?? lengthMax))).join("");
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

// Only demo: texts for the patterns of a JSON Schema. They are built and never searched: a pattern can take years to.

/** The most repetitions of a part. */
const repeatsMax = 200;

const escapes: ReadonlyMap<string, string> = new Map([
  ["d", "1"],
  ["D", "a"],
  ["w", "a"],
  ["W", "-"],
  ["s", " "],
  ["S", "a"],
  ["t", "\t"],
  ["n", "\n"],
  ["r", "\r"],
  ["b", ""],
]);

/**
 * The shortest text that a pattern matches. Alternatives, groups, sets and repetitions are understood.
 *
 * @throws DemoRequestError where the pattern has anything else
 */
function textOfPattern(pattern: string, param: string): string {
  const reader = new PatternReader(pattern, param);
  const text = reader.alternatives();
  if (!reader.isAtEnd) throw reader.unknown();
  return text;
}

class PatternReader {
  readonly #pattern: string;
  readonly #param: string;
  #at = 0;

  constructor(pattern: string, param: string) {
    this.#pattern = pattern;
    this.#param = param;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#pattern.length;
  }

  unknown(): Error {
    return refuse(
      this.#param,
      `the demo vendor does not understand the pattern ${this.#pattern.slice(0, 60)}`,
    );
  }

  /** Reads alternatives and returns the text of the first. */
  alternatives(): string {
    const first = this.#sequence();
    while (this.#take("|")) this.#sequence();
    return first;
  }

  #sequence(): string {
    let text = "";
    while (!this.isAtEnd && !"|)".includes(this.#next)) {
      const part = this.#part();
      text += part.repeat(this.#repeats());
      if (text.length > repeatsMax * 10) throw this.unknown();
    }
    return text;
  }

  get #next(): string {
    return this.#pattern[this.#at] ?? "";
  }

  #take(character: string): boolean {
    if (this.#next !== character) return false;
    this.#at += 1;
    return true;
  }

  #part(): string {
    const character = this.#next;
    this.#at += 1;
    if (character === "^" || character === "$") return "";
    if (character === ".") return "a";
    if (character === "[") return this.#set();
    if (character === "\\") return this.#escape();
    if (character !== "(") return character;
    // Groups without a number are as good as others; everything else that begins so looks around.
    if (this.#take("?") && !this.#take(":")) throw this.unknown();
    const text = this.alternatives();
    if (!this.#take(")")) throw this.unknown();
    return text;
  }

  #escape(): string {
    const character = this.#next;
    this.#at += 1;
    const known = escapes.get(character);
    if (known !== undefined) return known;
    if (/[A-Za-z0-9]/.test(character)) throw this.unknown();
    return character;
  }

  /** A character of a set: its first, or for a set of exclusions one that is not among them. */
  #set(): string {
    const isExcluding = this.#take("^");
    const end = this.#pattern.slice(this.#at).search(/(?<!\\)\]/);
    if (end < 0) throw this.unknown();
    const set = this.#pattern.slice(this.#at, this.#at + end);
    if (!isExcluding) {
      const text = this.#part();
      this.#at += set.length - (text === "" ? 0 : this.#consumed(set));
      this.#at += 1;
      return text;
    }
    this.#at += end + 1;
    const free = Array.from("a1 -_.A!~").find((each) => !new Set(set).has(each));
    if (free === undefined || /\\[wdsS]|-/.test(set)) throw this.unknown();
    return free;
  }

  #consumed(set: string): number {
    return set.startsWith("\\") ? 2 : 1;
  }

  #repeats(): number {
    if (this.#take("*") || this.#take("?")) return this.#lazy(0);
    if (this.#take("+")) return this.#lazy(1);
    const [all, least] = /^\{(\d+)(?:,\d*)?\}/.exec(this.#pattern.slice(this.#at)) ?? [];
    if (all === undefined) return 1;
    this.#at += all.length;
    if (Number(least) > repeatsMax) throw this.unknown();
    return this.#lazy(Number(least));
  }

  #lazy(count: number): number {
    this.#take("?");
    return count;
  }
}
