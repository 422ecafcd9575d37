/**
 * Removals that the deprecation rule allows: announced, in two minor versions, and after the
 * sunset.
 */
import { clone, type DescMessage } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { typesOf } from "../../src/contract/carriers.ts";
import { type Change, compareContracts } from "../../src/contract/compare.ts";
import { type Contract, contractOf } from "../../src/contract/contract.ts";
import type { Element } from "../../src/contract/elements.ts";

/** Number of minor versions with a notice before the removal. */
const noticeVersions = 2;

/** Rules of a removal. */
export interface RemovalOptions {
  /** The released versions. */
  readonly releases: readonly string[];
  /** Today in UTC, as `2027-01-31`. */
  readonly today: string;
}

/**
 * The released contract without what may be removed, and the changes that break its clients
 * nevertheless.
 */
export interface Breakage {
  readonly released: FileDescriptorSet;
  readonly breaking: readonly Change[];
}

/** Finds the changes that break clients, but for removals that were announced in time. */
export function findBreakage(
  baseline: FileDescriptorSet,
  newer: Contract,
  options: RemovalOptions,
): Breakage {
  const older = contractOf(baseline);
  const removed = compareContracts(older, newer).filter(({ action }) => action === "removed");
  const ended = removed.filter(
    ({ element }) => isEnded(element, options) && isReserved(element, older, newer),
  );
  const names = new Set(ended.map(({ element }) => element.name));
  const withoutRpcs = without(baseline, names);
  const [used, stillUsed] = [usedTypes(older), usedTypes(contractOf(withoutRpcs))];
  for (const type of used) if (!stillUsed.has(type)) names.add(type);
  const released = without(baseline, names);
  const breaking = compareContracts(contractOf(released), newer).filter(
    ({ isBreaking, element }) => isBreaking && !names.has(element.name),
  );
  return { released, breaking };
}

/** Whether the notice of an element was long enough. */
function isEnded({ deprecation }: Element, { releases, today }: RemovalOptions): boolean {
  if (deprecation === undefined || deprecation.sunsetDate > today) return false;
  const minors = releases
    .filter((version) => compareVersions(version, deprecation.since) >= 0)
    .map((version) => version.split(".").slice(0, 2).join("."));
  return new Set(minors).size >= noticeVersions;
}

/** Compares two versions by their numbers: negative if the first is older. */
export function compareVersions(one: string, other: string): number {
  const [left, right] = [one, other].map((version) => version.split(".").map(Number));
  const at = (left ?? []).findIndex((part, index) => part !== right?.[index]);
  return at === -1 ? 0 : (left?.[at] ?? 0) - (right?.[at] ?? 0);
}

/** Whether the number and name of a removed field or enum value can never be used again. */
function isReserved(
  { kind, name, owner, facts }: Element,
  older: Contract,
  newer: Contract,
): boolean {
  if (kind !== "field" && kind !== "enum value") return true;
  const holder = holderOf(newer, owner ?? "") ?? holderOf(older, owner ?? "");
  const number = Number(facts.get("number"));
  const short = name.split(".").at(-1) ?? "";
  return (
    holder !== undefined &&
    holder.reservedName.includes(short) &&
    holder.reservedRange.some(({ start, end }) => start <= number && number <= end)
  );
}

function holderOf({ files }: Contract, name: string) {
  const types = files.flatMap(({ messages, enums }) => [...messages, ...enums]);
  return types.find(({ typeName }) => typeName === name)?.proto;
}

/** The names of all types that RPCs use. */
function usedTypes({ files }: Contract): ReadonlySet<string> {
  const methods = files.flatMap(({ services }) => services).flatMap((each) => each.methods);
  const messages: DescMessage[] = methods.flatMap(({ input, output }) => [input, output]);
  return new Set(messages.flatMap((message) => [...typesOf(message)]));
}

/** A descriptor without some RPCs, fields, enum values and types. */
function without(set: FileDescriptorSet, names: ReadonlySet<string>): FileDescriptorSet {
  const copy = clone(FileDescriptorSetSchema, set);
  for (const file of copy.file) {
    const stays = (parent: string) => (part: { readonly name: string }) =>
      !names.has(`${parent}.${part.name}`);
    const prune = (message: DescriptorProto, name: string): void => {
      message.field = message.field.filter(stays(name));
      dropEmptyOneofs(message);
      message.nestedType = message.nestedType.filter(stays(name));
      message.enumType = message.enumType.filter(stays(name));
      for (const inner of message.nestedType) prune(inner, `${name}.${inner.name}`);
      for (const inner of message.enumType) {
        inner.value = inner.value.filter(stays(`${name}.${inner.name}`));
      }
    };
    file.messageType = file.messageType.filter(stays(file.package));
    for (const message of file.messageType) prune(message, `${file.package}.${message.name}`);
    file.enumType = file.enumType.filter(stays(file.package));
    for (const each of file.enumType) {
      each.value = each.value.filter(stays(`${file.package}.${each.name}`));
    }
    for (const service of file.service) {
      service.method = service.method.filter(stays(`${file.package}.${service.name}`));
    }
    file.service = file.service.filter(
      (service) => service.method.length > 0 && stays(file.package)(service),
    );
    // Its paths count the elements that are gone.
    delete file.sourceCodeInfo;
  }
  return copy;
}

/** A oneof without fields is invalid. Each optional field has a separate one. */
function dropEmptyOneofs(message: DescriptorProto): void {
  const indexOf = (field: (typeof message.field)[number]): number | undefined =>
    Object.hasOwn(field, "oneofIndex") ? field.oneofIndex : undefined;
  const used = [...message.oneofDecl.keys()].filter((index) =>
    message.field.some((field) => indexOf(field) === index),
  );
  if (used.length === message.oneofDecl.length) return;
  message.oneofDecl = message.oneofDecl.filter((_, index) => used.includes(index));
  for (const field of message.field) {
    const index = indexOf(field);
    if (index !== undefined) field.oneofIndex = used.indexOf(index);
  }
}
