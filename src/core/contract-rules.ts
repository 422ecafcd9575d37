import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescOneof,
  type DescService,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import {
  FeatureSet_FieldPresence,
  type FieldMask,
  FieldMaskSchema,
  type Timestamp,
} from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Dialect, route } from "../../gen/uas/http/v1/http_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import {
  exactly_one as exactlyOne,
  field as fieldRules,
  type FieldRules,
  type IntRules,
  type ListRules,
  type MaskRules,
  type MoneyRules,
  StringFormat,
  type StringRules,
} from "../../gen/uas/validate/v1/validate_pb.ts";
import { callerKey, requireActive } from "./caller.ts";
import { type Clock, systemClock } from "./clock.ts";
import { currency, formatUsd } from "./money.ts";
import { isUuid } from "./uuid.ts";
import { invalid } from "./validation.ts";

/** A service of the contract and its implementation. */
export interface Service {
  readonly service: DescService;
  readonly implementation: ServiceImpl<DescService>;
}

/**
 * Pairs a service with its implementation; the types make sure that they fit. Requests are checked against the rules of
 * the contract before the implementation sees them, whichever edge they come from. Methods without rules, which calls
 * to models are, keep their implementation as it is: they pay nothing.
 *
 * @param clock tells what is in the future. Default: the process's own
 */
export function serve<S extends DescService>(
  service: S,
  implementation: ServiceImpl<S>,
  clock: Pick<Clock, "now"> = systemClock,
): Service {
  const methods = implementation as unknown as Readonly<Record<string, Method>>;
  const checked = service.methods.map((method) => [
    method.localName,
    withCheck(requestCheck(method, clock), methods[method.localName]),
  ]);
  return { service, implementation: Object.fromEntries(checked) as ServiceImpl<DescService> };
}

type Context = Pick<HandlerContext, "values">;
type Method = (request: object, context: Context) => unknown;

function withCheck(
  check: CheckRequest | undefined,
  method: Method | undefined,
): Method | undefined {
  if (check === undefined || method === undefined) return method;
  return (request, context) => {
    // A suspended account is refused whatever its keys send (R-KEY-4).
    const caller = context.values.get(callerKey);
    if (caller?.kind === "key") requireActive(caller);
    check(request);
    return method(request, context);
  };
}

// The rules that the contract declares for requests (`uas.validate.v1`), made into one check for each method. Rules are
// read when a method is called first: reading those of all methods would take 40 ms of every start. Methods without any
// have no check, so that calls to models pay nothing.

/** Checks a request. @throws GatewayError INVALID_REQUEST, with the field at fault as `param` */
type CheckRequest = (request: object) => void;

/** Checks a message; with a mask only the members that it names. */
type CheckMembers = (message: Fields, mask?: ReadonlySet<string>) => void;

type Fields = Readonly<Record<string, unknown>>;

/** The name of a field in the spelling of the method's callers. */
type NameOf = (field: DescField) => string;

/** What the checks of a method share. */
interface CheckContext {
  readonly nameOf: NameOf;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Makes the check for the requests of a method; `undefined`: the contract declares no rules for them.
 *
 * @param clock tells what is in the future. Default: the process's own
 */
export function requestCheck(
  method: DescMethod,
  clock: Pick<Clock, "now"> = systemClock,
): CheckRequest | undefined {
  if (!hasRules(method.input, new Set())) return undefined;
  let check: CheckMembers | undefined;
  return (request) => {
    const context = { nameOf: nameOfFields(method), clock };
    check ??= membersCheck(method.input, context, new Set());
    check?.(request as Fields);
  };
}

/** Whether a message or one inside it has rules. @param seen the messages that were looked at */
function hasRules(message: DescMessage, seen: Set<DescMessage>): boolean {
  if (seen.has(message)) return false;
  seen.add(message);
  return (
    message.oneofs.some((oneof) => hasOption(oneof, exactlyOne)) ||
    message.fields.some(
      (field) =>
        hasOption(field, fieldRules) || (field.message && hasRules(field.message, seen)) === true,
    )
  );
}

/** Platform JSON has camelCase names; everywhere else the contract's own names are used. */
function nameOfFields(method: DescMethod): NameOf {
  const routes = getOption(method, route);
  const isPlatform = routes.some(({ dialect }) => dialect === Dialect.PLATFORM);
  return isPlatform ? ({ jsonName }) => jsonName : ({ name }) => name;
}

/** @param above the messages around this one: one that contains itself is not followed */
function membersCheck(
  message: DescMessage,
  context: CheckContext,
  above: ReadonlySet<DescMessage>,
): CheckMembers | undefined {
  if (above.has(message)) return undefined;
  const around = new Set([...above, message]);
  const checks = [
    ...message.fields.flatMap((field) => [
      ruleCheck(field, context),
      nestedCheck(field, context, around),
    ]),
    ...message.oneofs.map((oneof) => oneofCheck(oneof, context)),
  ].filter((check) => check !== undefined);
  if (checks.length === 0) return undefined;
  return (value, mask) => {
    for (const check of checks) check(value, mask);
  };
}

function oneofCheck(oneof: DescOneof, { nameOf }: CheckContext): CheckMembers | undefined {
  if (!getOption(oneof, exactlyOne)) return undefined;
  const names = oneof.fields.map(nameOf);
  const text = `Send one of ${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  return (message) => {
    const { case: given, value } = message[oneof.localName] as OneofValue;
    // The group itself is no member: there is none to name.
    if (given === undefined || value === "") throw invalid(undefined, text);
  };
}

interface OneofValue {
  readonly case: string | undefined;
  readonly value?: unknown;
}

function ruleCheck(field: DescField, { nameOf, clock }: CheckContext): CheckMembers | undefined {
  if (!hasOption(field, fieldRules)) return undefined;
  const rules: FieldRules = getOption(field, fieldRules);
  const name = nameOf(field);
  return (message, mask) => {
    if (mask !== undefined && !mask.has(field.name)) return;
    const value = valueOf(message, field);
    const problem = findProblem(value, rules, field) ?? pastProblem(value, rules, clock);
    if (problem !== undefined) throw invalid(name, withHint(`${name} ${problem}`, rules.hint));
  };
}

function withHint(message: string, hint: string): string {
  return hint === "" ? message : `${message}; ${hint}`;
}

function nestedCheck(
  field: DescField,
  context: CheckContext,
  above: ReadonlySet<DescMessage>,
): CheckMembers | undefined {
  const nested = field.message && membersCheck(field.message, context, above);
  if (nested === undefined) return undefined;
  const maskField = field.parent.fields.find(isMask);
  return (message, mask) => {
    if (mask !== undefined && !mask.has(field.name)) return;
    const value = valueOf(message, field);
    if (field.fieldKind === "list") for (const each of value as Fields[]) nested(each);
    else if (maskField !== undefined) {
      // A member that is named and not there is cleared: it has to fit the rules, too.
      const named = valueOf(message, maskField) as FieldMask | undefined;
      nested((value ?? {}) as Fields, new Set(named?.paths));
    } else if (value !== undefined) nested(value as Fields);
  };
}

function isMask({ message }: DescField): boolean {
  return message?.typeName === FieldMaskSchema.typeName;
}

function valueOf(message: Fields, field: DescField): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const { case: given, value } = message[field.oneof.localName] as OneofValue;
  return given === field.localName ? value : undefined;
}

// The rules of single fields (`uas.validate.v1.FieldRules`): what is wrong with a value, in words for its sender.

/**
 * What is wrong with a value by the rules of its field: the rest of a sentence that begins with its name, such as "is
 * required". `undefined`: nothing is.
 */
function findProblem(value: unknown, rules: FieldRules, field: DescField): string | undefined {
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

/** Whether a field has a value: an empty list and an empty mask are none; an empty text and a zero are one only where
 * the contract tells them from a field that is not sent (`optional`). */
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

/** Control characters, and what separates lines. */
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
  if (chars === 0 && minChars > 0) return "must not be empty: leave it out where there is none";
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

/** What is wrong with a valid time that is past. Apart from the other rules, because only this one needs a clock. */
function pastProblem(
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
