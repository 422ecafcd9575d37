/** Writes JSON in which parts are there as text already: schemas and arguments cross unchanged that way. */

/** JSON that is text already. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A value to be written. Members that are undefined are left out. */
export type JsonTree =
  | string
  | number
  | boolean
  | null
  | JsonText
  | readonly JsonTree[]
  | JsonBranch;

/** An object to be written. */
export interface JsonBranch {
  readonly [name: string]: JsonTree | undefined;
}

/** Passes each text that is a value. */
type MapText = (text: string) => string;

/**
 * The JSON of a value. Grown by adding to its end, which copies nothing: joining lists level by level copied
 * a large text once for each level that it lay in.
 *
 * @param mapText what is written in place of each text. Default: the text itself
 */
export function writeJson(tree: JsonTree, mapText: MapText = (text) => text): string {
  return append("", tree, mapText);
}

function append(text: string, tree: JsonTree, mapText: MapText): string {
  if (typeof tree === "string") return text + JSON.stringify(mapText(tree));
  if (typeof tree !== "object" || tree === null) return text + JSON.stringify(tree);
  if (tree instanceof JsonText) return text + tree.text;
  return isList(tree) ? appendList(text, tree, mapText) : appendBranch(text, tree, mapText);
}

function appendList(text: string, list: readonly JsonTree[], mapText: MapText): string {
  let whole = `${text}[`;
  for (let at = 0; at < list.length; at++) {
    if (at > 0) whole += ",";
    whole = append(whole, list[at] ?? null, mapText);
  }
  return `${whole}]`;
}

function appendBranch(text: string, branch: JsonBranch, mapText: MapText): string {
  let whole = `${text}{`;
  let isFirst = true;
  for (const name in branch) {
    const value = branch[name];
    if (value === undefined) continue;
    whole += `${isFirst ? "" : ","}${JSON.stringify(name)}:`;
    whole = append(whole, value, mapText);
    isFirst = false;
  }
  return `${whole}}`;
}

function isList(tree: readonly JsonTree[] | JsonBranch): tree is readonly JsonTree[] {
  return Array.isArray(tree);
}
