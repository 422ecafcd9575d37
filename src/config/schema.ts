/**
 * The structure of `uas.yaml` in zod 4: maps with fixed or free keys, lists, cases; and the way
 * from zod's issues to problems at their line and column.
 */
import { z } from "zod";
import type { ConfigDocument, Path } from "./document.ts";
import { word } from "./scalars.ts";
import { hint } from "../core/suggest.ts";

/** A key that exists, but not here: for another kind, type or provider only. */
export function absent(message: string) {
  return z.undefined({ error: message }).optional();
}

/** Several keys that are {@link absent}, as part of a shape. */
export function allAbsent<const Name extends string>(names: readonly Name[], message: string) {
  const shape = Object.fromEntries(names.map((name) => [name, absent(message)]));
  return shape as Record<Name, ReturnType<typeof absent>>;
}

/** A list. */
export function list<Item extends z.ZodType>(item: Item, what: string, fix = "") {
  const form = `must be a list of ${what}, such as [ … ]`;
  return z.array(item, { error: ({ input }) => (input === undefined ? fix : form) });
}

/** The condition of a case: a key has a word, is given (`true`), or is not given (`false`). */
export type Condition = Readonly<Record<string, string | boolean>>;

/**
 * The schemas that a {@link choose} hides from `z.toJSONSchema`. They are of type unknown, because
 * zod's type of registries replaces the types of schemas.
 */
export type Choice =
  | { readonly one: () => unknown; readonly list: () => unknown }
  | { readonly cases: readonly { readonly when: Condition; readonly schema: () => unknown }[] };

/** The choices of all schemas, for json-schema.ts. */
export const choices = z.registry<Choice>();

/** A map whose keys are free, in the order of the file. */
export function named<Value extends z.ZodType>(
  value: Value,
  { what, fix, checkName }: { what: string; fix: string; checkName: NameCheck },
) {
  return z
    .map(z.string(), value, {
      error: ({ input }) => (input === undefined ? fix : `must be a map of ${what}`),
    })
    .superRefine(
      (map, context) => {
        if (!(map instanceof Map)) return;
        for (const name of map.keys()) {
          const message = checkName(name);
          const params = { isKey: true };
          if (message) context.addIssue({ code: "custom", path: [name], message, params });
        }
      },
      { when: always },
    );
}

/** Returns the problem of a name in a map with free keys; undefined if there is none. */
export type NameCheck = (name: string) => string | undefined;

/**
 * For checks of a list or map that also run if one of its values is wrong: all problems are
 * reported at once.
 */
export function always(): boolean {
  return true;
}

type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/**
 * The values of a {@link section} by the names that TypeScript code uses: `base_url` is `baseUrl`.
 */
export type CamelKeys<Values> = {
  readonly [Name in keyof Values as Values[Name] extends undefined
    ? never
    : CamelCase<Name>]-?: Values[Name];
};

/**
 * Returns the problem of a map as a whole, given its values by the names of the file; undefined if
 * there is none.
 */
export type MapCheck = (given: Readonly<Record<string, unknown>>) => string | undefined;

interface SectionOptions<Shape> {
  /** The remedy if the map is missing. */
  readonly fix?: string;
  readonly check?: MapCheck;
  /** Describes keys for docs/reference and for editors. Links are relative to docs/. */
  readonly about?: { readonly [Name in keyof Shape]?: string };
}

/** The descriptions of the keys of each map, for json-schema.ts. */
export const descriptions = z.registry<Readonly<Record<string, string | undefined>>>();

/** A map with fixed keys. An unknown key is an error that suggests the likely key. */
export function section<const Shape extends z.ZodRawShape>(
  shape: Shape,
  { fix = "", check, about = {} }: SectionOptions<Shape> = {},
) {
  const names = Object.keys(shape);
  const object = z
    .strictObject(shape, {
      error(issue) {
        // One line for each key: report() gives each its own place.
        if (issue.code === "unrecognized_keys") return unknownKeys(issue.keys, names);
        return issue.input === undefined ? fix : `must be a map with the keys ${names.join(", ")}`;
      },
    })
    .register(descriptions, about)
    .superRefine(
      (values, context) => {
        const message = isObject(values) ? check?.(values) : undefined;
        if (message) context.addIssue({ code: "custom", message });
      },
      { when: always },
    );
  return z
    .preprocess((input) => (input instanceof Map ? givenKeys(input, names) : input), object)
    .transform((values) => camelKeys(values, names));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/**
 * The maps of a list with their indexes, for checks of a list some of whose values may be wrong.
 */
export function mapsOf(values: unknown): readonly [number, Readonly<Record<string, unknown>>][] {
  if (!Array.isArray(values)) return [];
  return values.flatMap((item: unknown, index) => (isObject(item) ? [[index, item]] : []));
}

/** A key without a value counts as not given. */
function givenKeys(map: Map<string, unknown>, names: readonly string[]): Record<string, unknown> {
  const given = [...map].filter(([name, value]) => value !== null || !names.includes(name));
  return Object.fromEntries(given);
}

function unknownKeys(unknown: readonly string[], names: readonly string[]): string {
  return unknown.map((key) => `unknown key${hint(isWord(key) ? key : "", names)}`).join("\n");
}

/**
 * Whether a key may appear in a message. One that is not a plain word may be a secret that lost its
 * name.
 */
function isWord(key: string): boolean {
  return /^[A-Za-z_-]{1,32}$/.test(key);
}

/**
 * Every name of the shape is set, `undefined` if the file lacks it: objects of one shape are fast
 * to read.
 */
function camelKeys<Values extends object>(
  values: Values,
  names: readonly string[],
): CamelKeys<Values> {
  const given = new Map<string, unknown>(Object.entries(values));
  const entries = names.map((name) => [
    name.replace(/_(.)/g, (_all, letter: string) => letter.toUpperCase()),
    given.get(name),
  ]);
  return Object.fromEntries(entries) as CamelKeys<Values>;
}

/**
 * A value whose schema depends on the value itself, such as on its `kind`. Unlike zod's
 * discriminated union it also checks the rest of a value whose discriminator is wrong.
 *
 * @param caseOf returns the case of an unchecked value
 * @param schemaOf creates the schema of a case; called once for each case of the file, since most
 * files have few
 * @param cases all cases with their conditions, for the JSON Schema; the most permissive is first
 */
export function choose<Case, Schema extends z.ZodType>(
  caseOf: (input: unknown) => Case,
  schemaOf: (found: Case) => Schema,
  cases: readonly (readonly [when: Condition, found: Case])[],
) {
  return chosen(caseOf, schemaOf).register(choices, {
    cases: cases.map(([when, found]) => ({ when, schema: () => schemaOf(found) })),
  });
}

/** One value, or a list of such values. */
export function oneOrList<One extends z.ZodType, List extends z.ZodType>(
  one: () => One,
  several: () => List,
) {
  return chosen(Array.isArray, (isList): One | List => (isList ? several() : one())).register(
    choices,
    { one, list: several },
  );
}

function chosen<Case, Schema extends z.ZodType>(
  caseOf: (input: unknown) => Case,
  schemaOf: (found: Case) => Schema,
) {
  const schemas = new Map<Case, Schema>();
  return z.unknown().transform((input, context): z.output<Schema> => {
    const found = caseOf(input);
    const schema = schemas.get(found) ?? schemaOf(found);
    schemas.set(found, schema);
    const result = schema.safeParse(input, parseOptions);
    if (result.success) return result.data;
    context.issues.push(...(result.error.issues as z.core.$ZodRawIssue[]));
    return z.NEVER;
  });
}

/** A map with one schema for each word of one of its keys. */
export function chooseBy<const Schemas extends Readonly<Record<string, () => z.ZodType>>>(
  key: string,
  schemas: Schemas,
  fix: string,
) {
  const words = Object.keys(schemas);
  return choose(
    (input) => words.find((found) => found === textAt(input, key)),
    (found): ReturnType<Schemas[keyof Schemas]> | ReturnType<typeof wordOnly> =>
      found === undefined
        ? wordOnly(key, words, fix)
        : (schemas[found]?.() as ReturnType<Schemas[keyof Schemas]>),
    words.map((found) => [{ [key]: found }, found]),
  );
}

/** For a word that is missing or unknown: the other keys cannot be checked. */
function wordOnly(key: string, words: readonly string[], fix: string) {
  const object = z.looseObject({ [key]: word(words, fix) }, { error: `must be a map with ${key}` });
  return z
    .preprocess((input) => (input instanceof Map ? givenKeys(input, [key]) : input), object)
    .transform(() => z.NEVER);
}

/**
 * Returns the text of a key in a map that no schema has checked yet; undefined if there is none.
 */
export function textAt(input: unknown, key: string): string | undefined {
  const value: unknown = input instanceof Map ? input.get(key) : undefined;
  return typeof value === "string" ? value : undefined;
}

const parseOptions: z.core.ParseContext<z.core.$ZodIssue> = {
  reportInput: true,
  // Compiled code pays only for schemas that are used often.
  jitless: true,
  // Every block has its own message; zod's message could repeat a value.
  error: () => "is not valid here",
};

/** Reads a document by a schema. Problems go to the document; the result is then `undefined`. */
export function readDocument<Schema extends z.ZodType>(
  document: ConfigDocument,
  schema: Schema,
): z.output<Schema> | undefined {
  const result = schema.safeParse(document.tree, parseOptions);
  if (result.success) return result.data;
  for (const issue of result.error.issues) report(document, issue);
  return undefined;
}

function report(document: ConfigDocument, issue: z.core.$ZodIssue): void {
  const { path, message } = issue;
  if (issue.code === "unrecognized_keys") {
    for (const [index, line] of message.split("\n").entries()) {
      const key = issue.keys[index] ?? "";
      document.errorAtKey([...path, key], line, isWord(key) ? [...path, key] : path);
    }
  } else if (issue.code === "custom" && issue.params?.["isKey"] === true) {
    document.errorAtKey(path, message, path.slice(0, -1));
  } else if (issue.input === undefined && path.length > 0) {
    reportMissing(document, path, message);
  } else {
    document.error(path, message);
  }
}

function reportMissing(document: ConfigDocument, path: Path, fix: string): void {
  document.error(path.slice(0, -1), `${String(path.at(-1))} is missing: ${fix}`);
}
