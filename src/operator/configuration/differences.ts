/** The differences between two configuration documents, by path. Pure. */
import { create } from "@bufbuild/protobuf";
import {
  type ConfigDifference,
  ConfigDifferenceSchema,
} from "../../../gen/uas/config/v1/config_pb.ts";
import { ConfigDocument, pathText, type Tree } from "../../config/document.ts";

/** The longest text of a value; the rest is cut. */
const shownChars = 300;

/** The most differences that are listed. */
const differencesMax = 1_000;

/**
 * Lists the settings in which two valid documents differ, in the order of the second one. A section
 * that is new or removed is one difference. Lists are compared as a whole.
 */
export function differencesOf(before: string, after: string): ConfigDifference[] {
  const found: ConfigDifference[] = [];
  compare(new ConfigDocument("", before).tree, new ConfigDocument("", after).tree, [], found);
  return found.slice(0, differencesMax);
}

function compare(
  before: Tree | undefined,
  after: Tree | undefined,
  path: readonly string[],
  found: ConfigDifference[],
): void {
  if (isMap(before) && isMap(after)) {
    for (const [key, value] of after) compare(before.get(key), value, [...path, key], found);
    for (const [key, value] of before) {
      if (!after.has(key)) compare(value, undefined, [...path, key], found);
    }
    return;
  }
  const [from, to] = [written(before), written(after)];
  if (from === to) return;
  found.push(
    create(ConfigDifferenceSchema, { path: pathText(path), before: cut(from), after: cut(to) }),
  );
}

function isMap(tree: Tree | undefined): tree is ReadonlyMap<string, Tree> {
  return tree instanceof Map;
}

/** A value as YAML in one line; empty if it is not there. */
function written(tree: Tree | undefined): string {
  if (tree === undefined) return "";
  if (tree === null) return "null";
  if (typeof tree === "string") return plain.test(tree) ? tree : JSON.stringify(tree);
  if (isMap(tree)) {
    const members = [...tree].map(([key, value]) => `${written(key)}: ${written(value)}`);
    return `{ ${members.join(", ")} }`;
  }
  return `[${tree.map((each) => written(each)).join(", ")}]`;
}

/** A text that needs no quotes in a list or map. */
const plain = /^[A-Za-z0-9_./-][A-Za-z0-9_./:@ -]*$/;

function cut(text: string): string {
  return text.length <= shownChars ? text : `${text.slice(0, shownChars).toWellFormed()}…`;
}
