/**
 * The rules of single fields (`uas.validate.v1.FieldRules`): the violation of a value, in words for
 * its sender.
 */
import type { DescEnum, DescField } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, type FieldMask, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import {
  type FieldRules,
  type IntRules,
  type ListRules,
  type MaskRules,
  type MoneyRules,
  StringFormat,
  type StringRules,
} from "../../gen/uas/validate/v1/validate_pb.ts";
import { currency, formatUsd } from "./money.ts";
import { isUuid } from "./uuid.ts";
import type { Clock } from "./clock.ts";

/** The name of a field in the spelling of the method's callers. */
export type NameOf = (field: DescField) => string;

/** Context that the checks of a method share. */
export interface CheckContext {
  readonly nameOf: NameOf;
  readonly clock: Pick<Clock, "now">;
}

/**
 * The violation of a field's rules, as the rest of a sentence that begins with its name, such as
 * "is required". Undefined if the value is valid.
 */
export function findProblem(
  value: unknown,
  rules: FieldRules,
  field: DescField,
): string | undefined {
  if (!hasValue(value, field)) return rules.required ? requiredText(rules) : undefined;
  const { type } = rules;
  switch (type.case) {
    case "string":
      return textProblem(value as string, type.value, rules);
    case "int":
      return intProblem(value as number, type.value);
    case "enum":
      return type.value.knownOnly ? enumProblem(value as number, field.enum) : undefined;
    case "list":
      return listProblem(value as readonly unknown[], type.value, field);
    case "money":
      return moneyProblem(value as Money, type.value);
    case "time":
      return timeProblem(value as Timestamp);
    case "mask":
      return maskProblem(value as FieldMask, type.value);
    case undefined:
      break;
  }
  return undefined;
}

/**
 * Whether a field has a value. An empty list or mask is not a value. An empty text or a zero is a
 * value only if the contract distinguishes it from an absent field (`optional`).
 */
function hasValue(value: unknown, field: DescField): boolean {
  if (value === undefined) return false;
  if (value === "" || value === 0) return isOptional(field);
  if (Array.isArray(value)) return value.length > 0;
  const paths = typeof value === "object" && value !== null && "paths" in value && value.paths;
  return !Array.isArray(paths) || paths.length > 0;
}

function isOptional({ fieldKind, presence }: DescField): boolean {
  const isScalar = fieldKind === "scalar" || fieldKind === "enum";
  return isScalar && presence === FeatureSet_FieldPresence.EXPLICIT;
}

function requiredText({ type }: FieldRules): string {
  if (type.case === "mask") {
    return `is required: list the fields to change: ${type.value.paths.join(", ")}`;
  }
  if (type.case !== "string" || type.value.maxChars === 0) return "is required";
  return `is required: ${Math.max(1, type.value.minChars)} to ${type.value.maxChars} characters`;
}

/** Control characters, and line separators. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}]/u;

function textProblem(text: string, rules: StringRules, all: FieldRules): string | undefined {
  const { minChars, maxChars, format } = rules;
  if (!text.isWellFormed() || text.includes("\0")) {
    return "must be well-formed text without NUL characters";
  }
  if (format === StringFormat.UUID) {
    return isUuid(text) ? undefined : "must be a UUID in lower case, with dashes";
  }
  const isLine = format === StringFormat.LINE;
  const counted = isLine ? text.trim() : text;
  // Most texts are shorter than their limit in UTF-16 units already: only others are counted.
  const chars = counted.length > maxChars ? Array.from(counted).length : counted.length;
  if (chars === 0 && all.required) return requiredText(all);
  if (chars === 0 && minChars > 0) return "must not be empty: omit it if there is none";
  if (maxChars > 0 && chars > maxChars) {
    return `is ${chars} characters long: send at most ${maxChars}`;
  }
  if (chars < minChars) return `is ${chars} characters long: send at least ${minChars}`;
  if ((isLine || format === StringFormat.PRINTABLE) && unprintable.test(counted)) {
    return "must be one line of text, without control characters";
  }
  if (rules.in.length > 0 && !rules.in.includes(counted)) {
    return `must be one of ${rules.in.join(", ")}`;
  }
  return undefined;
}

function intProblem(value: number, { min, max }: IntRules): string | undefined {
  const isRight = (min === undefined || value >= min) && (max === undefined || value <= max);
  if (isRight) return undefined;
  if (max === undefined) return `is ${value}: send ${min} or more`;
  return min === undefined
    ? `is ${value}: send at most ${max}`
    : `is ${value}: send ${min} to ${max}`;
}

function enumProblem(value: number, description: DescEnum | undefined): string | undefined {
  if (description === undefined || description.value[value] !== undefined) return undefined;
  const names = description.values.filter(({ number }) => number !== 0);
  return `must be one of ${names.map(({ localName }) => localName).join(", ")}`;
}

function listProblem(
  items: readonly unknown[],
  rules: ListRules,
  field: DescField,
): string | undefined {
  const { maxItems } = rules;
  if (maxItems > 0 && items.length > maxItems) {
    return `has ${items.length} entries: send at most ${maxItems}`;
  }
  if (rules.items === undefined) return undefined;
  for (const [index, item] of items.entries()) {
    const problem = findProblem(item, rules.items, field);
    if (problem !== undefined) return `has an invalid entry: number ${index + 1} ${problem}`;
  }
  return undefined;
}

function moneyProblem(money: Money, rules: MoneyRules): string | undefined {
  const { amountNanos, currencyCode } = money;
  const { minNanos, maxNanos, notZero } = rules;
  if (currencyCode !== "" && currencyCode !== currency) return `must be in ${currency}`;
  if (notZero && amountNanos === 0n) return "must not be zero";
  if (minNanos !== undefined && amountNanos < minNanos) {
    if (minNanos === 1n) return "must be more than zero";
    return minNanos === 0n ? "must not be negative" : `must be at least ${usd(minNanos)}`;
  }
  if (maxNanos !== undefined && amountNanos > maxNanos) return `must be at most ${usd(maxNanos)}`;
  return undefined;
}

function usd(nanos: bigint): string {
  return `${formatUsd(nanos)} ${currency}`;
}

/** The first and the last second that a Timestamp can mean: the years 1 and 9999. */
const secondsMin = -62_135_596_800n;
const secondsMax = 253_402_300_799n;

function timeProblem({ seconds, nanos }: Timestamp): string | undefined {
  if (seconds < secondsMin || seconds > secondsMax || nanos < 0 || nanos > 999_999_999) {
    return "must be a time between the years 1 and 9999";
  }
  return undefined;
}

/**
 * The problem of a valid time that is past. Separate from the other rules, because only this rule
 * needs a clock.
 */
export function pastProblem(
  value: unknown,
  { type }: FieldRules,
  clock: CheckContext["clock"],
): string | undefined {
  if (value === undefined || type.case !== "time" || !type.value.inFuture) return undefined;
  const { seconds, nanos } = value as Timestamp;
  const isPast = Number(seconds) * 1_000 + nanos / 1_000_000 <= clock.now();
  return isPast ? "must be in the future" : undefined;
}

function maskProblem({ paths }: FieldMask, { paths: allowed }: MaskRules): string | undefined {
  const other = paths.find((path) => !allowed.includes(path));
  if (other === undefined) return undefined;
  return `names "${other.slice(0, 100)}": the fields that can be changed are ${allowed.join(", ")}`;
}
