/** Walks the syntax tree of a configuration: maps with known or free keys, lists, and single values. */
import { type Node, isAlias, isMap, isScalar, isSeq } from "yaml";
import { hint } from "./suggest.ts";
import type { ReferenceSource } from "./references.ts";
import type { YamlFile } from "./yaml-file.ts";

/** A value of the file and the place it stands at. */
export interface Entry {
  /** How the value is called in messages, for example `models.fast-1.routes[0]`. */
  readonly path: string;
  /** Aliases are resolved. `null`: nothing is written there. */
  readonly node: Node | null;
  /** Where to point to: the value, or its key where there is no value. */
  readonly place: object;
}

/** One entry of a map whose keys are free. */
export interface Member {
  readonly key: string;
  readonly value: Entry;
  /** The key itself, to point to. */
  readonly keyPlace: object;
}

/** The entries of a map whose keys are fixed; those without a value are absent. */
export type Fields<Name extends string> = Partial<Record<Name, Entry>>;

/** A file being read, with what its references are resolved with. */
export interface Reader extends YamlFile {
  readonly references: ReferenceSource;
}

/** The outermost value of the file. */
export function rootEntry(reader: Reader): Entry {
  return { path: "", node: target(reader, reader.root), place: reader.root ?? {} };
}

/** The entries of a map whose keys are free. Problems are reported; the result is then what can be read. */
export function members(reader: Reader, entry: Entry, what: string): readonly Member[] {
  const { node } = entry;
  if (!isMap(node)) {
    report(reader, entry, `must be a map of ${what}`);
    return [];
  }
  const found: Member[] = [];
  for (const pair of node.items) {
    const keyNode = target(reader, pair.key as Node | null);
    const keyPlace = (pair.key as Node | null) ?? node;
    if (!isScalar(keyNode)) {
      reader.problems.error(keyPlace, entry.path, "a key must be a single word");
      continue;
    }
    const key = keyNode.source ?? String(keyNode.value);
    const value = pair.value as Node | null;
    const path = childPath(entry.path, key);
    found.push({ key, keyPlace, value: child(reader, value, { path, keyPlace }) });
  }
  return found;
}

function child(
  reader: Reader,
  value: Node | null,
  { path, keyPlace }: { readonly path: string; readonly keyPlace: object },
): Entry {
  const node = target(reader, value);
  return isEmpty(node)
    ? { path, node: null, place: keyPlace }
    : { path, node, place: node ?? keyPlace };
}

/** The entries of a map whose keys are fixed. An unknown key is reported with the one it may stand for. */
export function fields<const Name extends string>(
  reader: Reader,
  entry: Entry,
  names: readonly Name[],
): Fields<Name> {
  const found: Fields<Name> = {};
  for (const { key, keyPlace, value } of members(reader, entry, `the keys ${names.join(", ")}`)) {
    const name = names.find((known) => known === key);
    if (name === undefined) {
      // A key that is no plain word may be a secret that lost its name: it is not repeated.
      const isWord = /^[A-Za-z_-]{1,32}$/.test(key);
      const path = isWord ? value.path : entry.path;
      reader.problems.error(keyPlace, path, `unknown key${hint(isWord ? key : "", names)}`);
    } else if (value.node !== null) {
      found[name] = value;
    }
  }
  return found;
}

/** Whether the value is a list. */
export function isList({ node }: Entry): boolean {
  return isSeq(node);
}

/** The entries of a list. */
export function items(reader: Reader, entry: Entry, what: string): readonly Entry[] {
  const { node, path } = entry;
  if (!isSeq(node)) {
    report(reader, entry, `must be a list of ${what}, such as [ … ]`);
    return [];
  }
  return node.items.map((item, index) =>
    child(reader, item as Node | null, { path: `${path}[${index}]`, keyPlace: node }),
  );
}

/**
 * The text of a single value exactly as written, quotes and escapes resolved: `0.150` stays `0.150`.
 *
 * @returns `undefined` where it is a map, a list, or empty, which is reported
 */
export function scalarText(reader: Reader, entry: Entry, what: string): string | undefined {
  const { node } = entry;
  const text = isScalar(node) ? (node.source ?? String(node.value)) : "";
  if (text !== "") return text;
  report(reader, entry, `must be ${what}`);
  return undefined;
}

/** Reports an error about a value. */
export function report(reader: Reader, entry: Entry, message: string): void {
  reader.problems.error(entry.place, entry.path, message);
}

/** The value of a key that must be there; its absence is reported at the map. */
export function required<Name extends string>(
  reader: Reader,
  owner: Entry,
  { from, name, fix }: { readonly from: Fields<Name>; readonly name: Name; readonly fix: string },
): Entry | undefined {
  const value = from[name];
  // A map that is none has been reported already.
  if (value === undefined && isMap(owner.node)) report(reader, owner, `${name} is missing: ${fix}`);
  return value;
}

function target(reader: YamlFile, node: Node | null): Node | null {
  return isAlias(node) ? (reader.aliases.get(node) ?? null) : node;
}

function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

function childPath(path: string, key: string): string {
  // Model names hold dots: quoted, or one could not tell where the name ends.
  const name = /^[\w/:@+-]+$/.test(key) ? key : `[${JSON.stringify(key)}]`;
  if (path === "") return name;
  return name.startsWith("[") ? `${path}${name}` : `${path}.${name}`;
}
