/**
 * The rules that the contract declares for requests (`uas.validate.v1`), compiled into one check
 * per method. Rules are read at the first call of a method: reading the rules of all methods would
 * add 40 ms to every start. Methods without rules have no check, so that calls to models have no
 * added cost.
 */
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescOneof,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { type FieldMask, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { Dialect, route } from "../../gen/uas/http/v1/http_pb.ts";
import {
  exactly_one as exactlyOne,
  field as fieldRules,
  type FieldRules,
} from "../../gen/uas/validate/v1/validate_pb.ts";
import { type Clock, systemClock } from "./clock.ts";
import { invalid } from "./validation.ts";
import { type CheckContext, findProblem, type NameOf, pastProblem } from "./field-rules.ts";

/** Checks a request. @throws GatewayError INVALID_REQUEST, with the field at fault as `param` */
export type CheckRequest = (request: object) => void;

/** Checks a message; with a mask only the members that it names. */
type CheckMembers = (message: Fields, mask?: ReadonlySet<string>) => void;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Makes the check for the requests of a method; undefined if the contract declares no rules for
 * them.
 *
 * @param clock decides which times are in the future. The system clock by default
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

/**
 * Whether a message or one inside it has rules.
 *
 * @param seen the messages that were already checked
 */
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

/** Platform JSON has camelCase names; everywhere else the contract's names are used. */
function nameOfFields(method: DescMethod): NameOf {
  const routes = getOption(method, route);
  const isPlatform = routes.some(({ dialect }) => dialect === Dialect.PLATFORM);
  return isPlatform ? ({ jsonName }) => jsonName : ({ name }) => name;
}

/** @param above the messages around this one: a message that contains itself is not followed */
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
    // The error names no member, because the group itself is not a member.
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
      // A member that is named but absent is cleared: the default must satisfy the rules, too.
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
