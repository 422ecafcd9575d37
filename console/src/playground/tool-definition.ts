/** The definition of a tool: read from a form, with the errors in it. */
import type { FunctionTool } from "./conversation.ts";

/** The values of the form, as typed. */
export interface ToolForm {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: string;
}

/** The values for a new tool: an example, which is easier to edit than an empty form. */
export const newTool: ToolForm = {
  name: "",
  description: "",
  parameters: JSON.stringify(
    {
      type: "object",
      properties: { city: { type: "string", description: "For example Berlin" } },
      required: ["city"],
    },
    undefined,
    2,
  ),
};

/** The values for an existing tool. */
export function formOf({
  function: { name, description = "", parameters },
}: FunctionTool): ToolForm {
  return { name, description, parameters: JSON.stringify(parameters, undefined, 2) };
}

/** The tool of valid values. */
export function toolOf({ name, description, parameters }: ToolForm): FunctionTool {
  return {
    type: "function",
    function: {
      name: name.trim(),
      ...(description.trim() !== "" && { description: description.trim() }),
      parameters: JSON.parse(parameters) as object,
    },
  };
}

/** The error in a name; the rules are those of all vendors. */
export function nameFault(
  name: string,
  others: readonly FunctionTool[],
): "empty" | "letters" | "taken" | undefined {
  if (name === "") return "empty";
  if (!/^[\w-]{1,64}$/.test(name)) return "letters";
  return others.some((other) => other.function.name === name) ? "taken" : undefined;
}

/** An error in a schema. */
export interface SchemaFault {
  readonly kind: "syntax" | "object" | "root" | "type" | "list" | "names" | "unknownName" | "text";
  /** The path of the wrong member, with dots; empty for the whole schema. */
  readonly path: string;
  /** `syntax`: the browser's message; `unknownName`: the name. */
  readonly detail?: string;
}

/**
 * The first error in the JSON of a schema; undefined if there is none. A full validator would
 * compile code, which the security policy of the pages forbids: this checks the rules of all
 * vendors.
 */
export function parametersFault(json: string): SchemaFault | undefined {
  let schema: unknown;
  try {
    schema = JSON.parse(json);
  } catch (error) {
    return { kind: "syntax", path: "", detail: error instanceof Error ? error.message : "" };
  }
  if (!isObject(schema)) return { kind: "object", path: "" };
  if (schema["type"] !== "object") return { kind: "root", path: "type" };
  const [first] = faultsOf(schema, "");
  return first;
}

type Schema = Readonly<Record<string, unknown>>;

const types = new Set<unknown>([
  "string",
  "number",
  "integer",
  "boolean",
  "array",
  "object",
  "null",
]);

function* faultsOf(schema: unknown, path: string): Generator<SchemaFault> {
  if (typeof schema === "boolean") return;
  if (isObject(schema)) yield* objectFaults(schema, path);
  else yield { kind: "object", path };
}

function* objectFaults(schema: Schema, path: string): Generator<SchemaFault> {
  yield* wordFaults(schema, path);
  yield* requiredFaults(schema, path);
  for (const name of ["properties", "$defs", "definitions", "patternProperties"]) {
    const schemas = schema[name] ?? {};
    if (!isObject(schemas)) yield { kind: "object", path: below(path, name) };
    else yield* allFaults(schemas, below(path, name));
  }
  for (const name of ["anyOf", "oneOf", "allOf", "prefixItems"]) {
    const schemas = schema[name];
    if (schemas === undefined) continue;
    if (isFullList(schemas))
      yield* allFaults(Object.fromEntries(schemas.entries()), below(path, name));
    else yield { kind: "list", path: below(path, name) };
  }
  for (const name of ["items", "additionalProperties", "not"]) {
    if (schema[name] !== undefined) yield* faultsOf(schema[name], below(path, name));
  }
}

function* allFaults(schemas: Schema, path: string): Generator<SchemaFault> {
  for (const [name, schema] of Object.entries(schemas)) yield* faultsOf(schema, below(path, name));
}

/** The errors in members that are no schemas. */
function* wordFaults(schema: Schema, path: string): Generator<SchemaFault> {
  const { type, description, enum: values } = schema;
  const isType = isFullList(type) ? type.every((each) => types.has(each)) : types.has(type);
  if (type !== undefined && !isType) yield { kind: "type", path: below(path, "type") };
  if (description !== undefined && typeof description !== "string") {
    yield { kind: "text", path: below(path, "description") };
  }
  if (values !== undefined && !isFullList(values))
    yield { kind: "list", path: below(path, "enum") };
}

function* requiredFaults({ required, properties }: Schema, path: string): Generator<SchemaFault> {
  if (required === undefined) return;
  const where = below(path, "required");
  const names: readonly unknown[] = Array.isArray(required) ? required : [undefined];
  for (const name of names) {
    const isKnown =
      typeof name === "string" && isObject(properties) && Object.hasOwn(properties, name);
    if (typeof name !== "string") yield { kind: "names", path: where };
    else if (!isKnown) yield { kind: "unknownName", path: where, detail: name };
  }
}

function below(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function isFullList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0;
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
