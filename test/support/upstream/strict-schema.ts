/** Vendors' rules for strict JSON schemas. */
import { isObject } from "./exchange.ts";

/** Keys that must be `required`: all for OpenAI, any for Anthropic. */
export interface SchemaDemands {
  readonly allRequired: boolean;
}

/** Why a schema cannot be followed strictly; undefined if it can. */
export function schemaFault(
  schema: unknown,
  demands: SchemaDemands,
  context: readonly string[] = [],
): string | undefined {
  if (!isObject(schema)) return undefined;
  const where = `In context=(${context.map((step) => `'${step}'`).join(", ")}), `;
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  if (schema["type"] === "object") {
    if (schema["additionalProperties"] !== false) {
      return `${where}'additionalProperties' is required to be supplied and to be false.`;
    }
    const required = Array.isArray(schema["required"]) ? schema["required"] : [];
    const missing = Object.keys(properties).find((name) => !required.includes(name));
    if (demands.allRequired && missing !== undefined) {
      return `${where}'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`;
    }
  }
  return childrenOf(schema, properties)
    .map(([step, child]) => schemaFault(child, demands, [...context, ...step]))
    .find((fault) => fault !== undefined);
}

function childrenOf(
  schema: Record<string, unknown>,
  properties: Record<string, unknown>,
): Array<[string[], unknown]> {
  const definitions = schema["$defs"] ?? schema["definitions"];
  return [
    ...Object.entries(properties).map(([name, child]): [string[], unknown] => [
      ["properties", name],
      child,
    ]),
    ...(isObject(definitions) ? Object.entries(definitions) : []).map(
      ([name, child]): [string[], unknown] => [["$defs", name], child],
    ),
    ...(Array.isArray(schema["anyOf"]) ? schema["anyOf"] : []).map(
      (child, at): [string[], unknown] => [["anyOf", String(at)], child],
    ),
    ...(schema["items"] === undefined ? [] : [[["items"], schema["items"]] as [string[], unknown]]),
  ];
}

/** A value that fits a schema: strings are `word`, numbers 7, arrays have one item. */
export function sample(schema: unknown, word: string): unknown {
  if (!isObject(schema)) return word;
  if (schema["const"] !== undefined) return schema["const"];
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  const variants = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(variants)) return sample(variants[0], word);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  switch (String(type).toLowerCase()) {
    case "object": {
      const properties = isObject(schema["properties"]) ? schema["properties"] : {};
      return Object.fromEntries(
        Object.entries(properties).map(([name, child]) => [name, sample(child, word)]),
      );
    }
    case "array":
      return [sample(schema["items"], word)];
    case "number":
    case "integer":
      return 7;
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return word;
  }
}
