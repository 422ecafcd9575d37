/** The settings in which two documents differ, and moving them to a third one. */
import { ConfigText, type Path, type Tree } from "./document.ts";

/** A setting that differs, with its values in one line; empty if it is not there. */
export interface Change {
  readonly path: Path;
  readonly before: string;
  readonly after: string;
}

/** Lists the differences. Lists are compared as a whole, as the gateway compares them. */
export function changesOf(before: ConfigText, after: ConfigText): Change[] {
  const found: Change[] = [];
  compare(before.treeAt([]), after.treeAt([]), [], found);
  return found;
}

function compare(
  before: Tree | undefined,
  after: Tree | undefined,
  path: Path,
  found: Change[],
): void {
  if (isMap(before) && isMap(after)) {
    const keys = new Set([...after.keys(), ...before.keys()]);
    for (const key of keys) compare(before.get(key), after.get(key), [...path, key], found);
    return;
  }
  const change = { path, before: lineOf(before), after: lineOf(after) };
  if (change.before !== change.after) found.push(change);
}

function isMap(tree: Tree | undefined): tree is ReadonlyMap<string, Tree> {
  return tree instanceof Map;
}

/** A value in one line. */
function lineOf(tree: Tree | undefined): string {
  if (tree === undefined) return "";
  if (typeof tree === "string") return tree || '""';
  if (!isMap(tree)) return `[${tree.map((each) => lineOf(each)).join(", ")}]`;
  return `{ ${[...tree].map(([key, value]) => `${key}: ${lineOf(value)}`).join(", ")} }`;
}

/** Whether two changes are of the same setting, or one is inside the other. */
export function isOverlapping(one: Change, other: Change): boolean {
  const length = Math.min(one.path.length, other.path.length);
  return one.path.slice(0, length).every((step, index) => step === other.path[index]);
}

/** The changes between two documents, made in another one. */
export function moveChanges(base: ConfigText, own: ConfigText, target: string): string {
  return changesOf(base, own).reduce(
    (text, { path }) => new ConfigText(text).withFrom(own, path),
    target,
  );
}
