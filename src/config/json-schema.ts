/**
 * The JSON Schema of `uas.yaml`, from the schemas that validate it: editors complete and check keys
 * with it. It describes values as YAML reads them. What a schema of single values cannot express,
 * such as a route to a vendor that does not exist, is checked by `uas check` only.
 */
import { z } from "zod";
import type { ServedKinds } from "./kinds.ts";
import { fileSchema } from "./load.ts";
import { type Choice, choices, type Condition, descriptions } from "./schema.ts";

/** A JSON Schema. */
export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The schema of the file. @param kinds the kinds of vendor that this version serves */
export function configJsonSchema(kinds: ServedKinds): JsonSchema {
  const { root, defs } = withDefinitions(withoutLinks(linkedJsonSchema(kinds)));
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "uas.yaml",
    description: "The configuration file of UAS Gateway.",
    ...root,
    // Vendors and models may be in the included files only.
    required: ["version"],
    anyOf: [{ required: ["vendors", "models"] }, { required: ["include"] }],
    $defs: defs,
  };
}

/** The same without definitions, and with links to pages in its descriptions. */
export function linkedJsonSchema(kinds: ServedKinds): JsonSchema {
  const references = { env: {}, folder: "/", placeholder: "" };
  return toJson(fileSchema(references, { kinds, vendorNames: [] }));
}

function withoutLinks(json: JsonSchema): JsonSchema {
  const text = JSON.stringify(json, (key, value: unknown) =>
    key === "description" && typeof value === "string"
      ? value.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1")
      : value,
  );
  return JSON.parse(text) as JsonSchema;
}

function toJson(schema: unknown): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema as z.ZodType, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      complete(zodSchema as unknown as z.ZodType, jsonSchema);
    },
  });
  return finish(json);
}

/** The descriptions of an object's keys, until {@link finish} moves them to the keys. */
const aboutMark = "x-about";

/** A default in the code's units, until {@link finish} writes it as in the file. */
const defaultMark = "x-default";

/**
 * Adds what zod leaves out. It changes the schema itself only: zod completes the schemas of keys at
 * times of its own.
 */
function complete(schema: z.ZodType, json: JsonSchema): void {
  const choice = choices.get(schema);
  if (choice !== undefined) Object.assign(json, choiceJson(choice));
  else if (schema instanceof z.ZodMap) {
    Object.assign(json, { type: "object", additionalProperties: toJson(schema.valueType) });
  } else if (schema instanceof z.ZodUndefined) json.type = "null";
  else if (schema instanceof z.ZodObject) json[aboutMark] = descriptions.get(schema) ?? {};
  else if (schema instanceof z.ZodDefault) json[defaultMark] = schema.def.defaultValue;
}

function finish(json: JsonSchema): JsonSchema {
  const { [aboutMark]: about, [defaultMark]: value, ...rest } = mapParts(json, finish);
  const written = writtenDefault(rest, value);
  if (rest.type === "integer" || rest.type === "boolean") delete rest.minLength;
  return {
    ...rest,
    ...(written !== undefined && { default: written }),
    ...(about !== undefined && { properties: finishMembers(rest, about as Descriptions) }),
  };
}

type Descriptions = Readonly<Record<string, string | undefined>>;

/** A key without a value counts as not given. */
function finishMembers(json: JsonSchema, about: Descriptions): Record<string, JsonSchema> {
  const members = membersOf(json).map(([name, member]) => {
    const description = member.type === "null" ? undefined : about[name];
    const described = { ...member, ...(description !== undefined && { description }) };
    return [name, json.required?.includes(name) === true ? described : orNull(described)];
  });
  return Object.fromEntries(members) as Record<string, JsonSchema>;
}

/** Those of whole sections are the defaults of their keys. */
function writtenDefault(json: JsonSchema, value: unknown): string | number | boolean | undefined {
  if (typeof value === "number") return json["title"] === "duration" ? durationText(value) : value;
  return (typeof value === "string" && value !== "") || typeof value === "boolean"
    ? value
    : undefined;
}

function orNull(json: JsonSchema): JsonSchema {
  if (typeof json.else === "object") return { ...json, else: orNull(json.else) };
  const types = [json.type ?? []].flat();
  if (types.includes("null")) return json;
  return {
    ...json,
    type: [...types, "null"] as unknown as NonNullable<JsonSchema["type"]>,
    ...(json.enum && { enum: [...new Set([...json.enum, null])] }),
  };
}

function durationText(ms: number): string {
  const [unit, size] = (
    [
      ["h", 3_600_000],
      ["m", 60_000],
      ["s", 1_000],
    ] as const
  ).find(([, each]) => ms % each === 0) ?? ["ms", 1];
  return unit === "m" && ms < 600_000 ? `${ms / 1_000}s` : `${ms / size}${unit}`;
}

function choiceJson(choice: Choice): JsonSchema {
  if ("one" in choice) {
    return { if: { type: "array" }, then: toJson(choice.list()), else: toJson(choice.one()) };
  }
  const cases = choice.cases.map(({ when, schema }) => ({ when, json: toJson(schema()) }));
  const base = commonSchema(cases.map(({ json }) => json));
  const groups = Map.groupBy(cases, ({ json }) => JSON.stringify(difference(base, json)));
  groups.delete("{}");
  return {
    ...base,
    allOf: [...groups].map(([then, members]) => ({
      if: conditionJson(members.map(({ when }) => when)),
      then: JSON.parse(then) as JsonSchema,
    })),
  };
}

/** All members of all cases; the first case that has a member describes it. */
function commonSchema(cases: readonly JsonSchema[]): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  for (const [name, member] of cases.flatMap((each) => membersOf(each))) {
    const known = properties[name];
    if (known === undefined || known.type === "null") properties[name] = member;
    else if (known.enum && member.enum) {
      const union = { ...known, enum: [...new Set([...known.enum, ...member.enum])] };
      properties[name] = union.enum.includes(null) ? orNull(union) : union;
    }
  }
  const required = cases[0]?.required?.filter((name) =>
    cases.every((each) => each.required?.includes(name)),
  );
  return { type: "object", properties, required: required ?? [], additionalProperties: false };
}

function membersOf(json: JsonSchema): [string, JsonSchema][] {
  return Object.entries(json.properties ?? {}) as [string, JsonSchema][];
}

/** Demands of a case beyond the common schema, without the descriptions, which are the same. */
function difference(base: JsonSchema, json: JsonSchema): JsonSchema {
  const changed = membersOf(json)
    .map(([name, member]) => [name, plain(member), plain(base.properties?.[name])] as const)
    .filter(([, own, common]) => JSON.stringify(own) !== JSON.stringify(common));
  const required = json.required?.filter((name) => !base.required?.includes(name)) ?? [];
  return {
    ...(changed.length > 0 && {
      properties: Object.fromEntries(changed.map(([name, own]) => [name, own as JsonSchema])),
    }),
    ...(required.length > 0 && { required }),
  };
}

/** A schema without its descriptions and defaults. */
function plain(json: unknown): unknown {
  return JSON.parse(
    JSON.stringify(json, (key, value: unknown) =>
      typeof value !== "object" && (key === "description" || key === "default") ? undefined : value,
    ),
  );
}

/** The condition of several cases; those that differ in the word of one key become one. */
function conditionJson(conditions: readonly Condition[]): JsonSchema {
  const groups = Map.groupBy(conditions, (each) =>
    JSON.stringify(Object.entries(each).filter(([, value]) => typeof value === "boolean")),
  );
  const forms = [...groups.values()].flatMap((group) => {
    const key = Object.entries(group[0] ?? {}).find(([, value]) => typeof value === "string")?.[0];
    const isSame = key !== undefined && group.every((each) => typeof each[key] === "string");
    return isSame
      ? [
          oneCondition(
            group[0] ?? {},
            group.map((each) => each[key]),
          ),
        ]
      : group.map((each) => oneCondition(each));
  });
  return forms.length === 1 ? (forms[0] ?? {}) : { anyOf: forms };
}

function oneCondition(condition: Condition, words?: readonly unknown[]): JsonSchema {
  const entries = Object.entries(condition);
  const form = (value: string | boolean): JsonSchema => {
    if (typeof value === "string") return { enum: (words ?? [value]) as string[] };
    return value ? { not: { type: "null" } } : { type: "null" };
  };
  return {
    properties: Object.fromEntries(entries.map(([name, value]) => [name, form(value)])),
    required: entries.filter(([, value]) => value !== false).map(([name]) => name),
  };
}

/** Parts of at least this many characters that occur twice become definitions. */
const definitionCharsMin = 80;

/** Moves repeated parts to `$defs`: the file is a tenth as long. */
function withDefinitions(written: JsonSchema): {
  readonly root: JsonSchema;
  readonly defs: Record<string, JsonSchema>;
} {
  const counts = new Map<string, number>();
  const count = (json: JsonSchema): JsonSchema => {
    const text = JSON.stringify(json);
    counts.set(text, (counts.get(text) ?? 0) + 1);
    return counts.get(text) === 1 ? mapParts(json, count) : json;
  };
  count(written);
  const names = new Map<string, string>();
  const defs: Record<string, JsonSchema> = {};
  const replace = (json: JsonSchema, key = "value"): JsonSchema => {
    const text = JSON.stringify(json);
    if (text.length < definitionCharsMin || (counts.get(text) ?? 0) < 2) {
      return mapParts(json, replace);
    }
    let name = names.get(text);
    if (name === undefined) {
      const stem = json["title"]?.replaceAll(" ", "-") ?? key;
      const same = Object.keys(defs).filter((each) => each.replace(/-\d+$/, "") === stem).length;
      name = same === 0 ? stem : `${stem}-${same + 1}`;
      names.set(text, name);
      defs[name] = {};
      defs[name] = mapParts(json, replace);
    }
    return { $ref: `#/$defs/${name}` };
  };
  return { root: mapParts(written, replace), defs };
}

/** Replaces each schema that is directly within another. */
function mapParts(
  json: JsonSchema,
  replace: (part: JsonSchema, key?: string) => JsonSchema,
  name?: string,
): JsonSchema {
  const part = (each: unknown, key?: string): unknown =>
    typeof each === "object" && each !== null ? replace(each as JsonSchema, key ?? name) : each;
  const entries = Object.entries(json).map(([key, value]: [string, unknown]) => {
    if (key === "properties") {
      const members = Object.entries(value as object);
      return [key, Object.fromEntries(members.map(([each, own]) => [each, part(own, each)]))];
    }
    if (key === "allOf" || key === "anyOf")
      return [key, (value as unknown[]).map((each) => part(each))];
    const isSchema = ["additionalProperties", "items", "if", "then", "else", "not"].includes(key);
    return [key, isSchema ? part(value) : value];
  });
  return Object.fromEntries(entries) as JsonSchema;
}
