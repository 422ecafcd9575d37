/** Validation rules of fields as properties, and whether a changed one refuses more requests. */
import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import {
  field as fieldRules,
  type FieldRules,
  StringFormatSchema,
} from "../../gen/uas/validate/v1/validate_pb.ts";

/** Prefix of the names of these properties. */
const prefix = "rule ";

/** The rules of a field by name, such as `rule max_chars`: `200`. Absent: nothing is limited. */
export function ruleFacts(field: DescField): readonly (readonly [name: string, value: string])[] {
  if (!hasOption(field, fieldRules)) return [];
  return factsOf(getOption(field, fieldRules)).map(([name, value]) => [prefix + name, value]);
}

function factsOf({ required, type }: FieldRules): (readonly [string, string])[] {
  const own: (readonly [string, string])[] = required ? [["required", "yes"]] : [];
  switch (type.case) {
    case "string": {
      const { minChars, maxChars, format, in: words } = type.value;
      if (minChars > 0) own.push(["min_chars", String(minChars)]);
      if (maxChars > 0) own.push(["max_chars", String(maxChars)]);
      if (format > 0) own.push(["format", StringFormatSchema.value[format]?.localName ?? ""]);
      if (words.length > 0) own.push(["in", words.join(", ")]);
      break;
    }
    case "int": {
      const { min, max } = type.value;
      if (min !== undefined) own.push(["min", String(min)]);
      if (max !== undefined) own.push(["max", String(max)]);
      break;
    }
    case "enum":
      if (type.value.knownOnly) own.push(["known_only", "yes"]);
      break;
    case "list": {
      const { maxItems, items } = type.value;
      if (maxItems > 0) own.push(["max_items", String(maxItems)]);
      if (items)
        own.push(...factsOf(items).map(([name, value]) => [`item ${name}`, value] as const));
      break;
    }
    case "money": {
      const { minNanos, maxNanos, notZero } = type.value;
      if (minNanos !== undefined) own.push(["min_nanos", String(minNanos)]);
      if (maxNanos !== undefined) own.push(["max_nanos", String(maxNanos)]);
      if (notZero) own.push(["not_zero", "yes"]);
      break;
    }
    case "time":
      if (type.value.inFuture) own.push(["in_future", "yes"]);
      break;
    case "mask":
      own.push(["paths", type.value.paths.join(", ")]);
      break;
    case undefined:
  }
  return own;
}

/** Whether a property is a rule. */
export function isRule(name: string): boolean {
  return name.startsWith(prefix);
}

/**
 * Whether a changed rule refuses requests that it accepted before.
 *
 * @param before `undefined`: there was no such rule
 * @param after `undefined`: there is none any more
 */
export function isTighter(
  name: string,
  before: string | undefined,
  after: string | undefined,
): boolean {
  if (after === undefined) return false;
  if (before === undefined) return true;
  const limit = name.split(" ").at(-1) ?? "";
  if (limit.startsWith("min")) return BigInt(after) > BigInt(before);
  if (limit.startsWith("max")) return BigInt(after) < BigInt(before);
  if (limit !== "in" && limit !== "paths") return true;
  const accepted = new Set(after.split(", "));
  return before.split(", ").some((word) => !accepted.has(word));
}
