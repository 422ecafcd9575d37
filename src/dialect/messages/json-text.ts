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

/** The JSON of a value. */
export function writeJson(tree: JsonTree): string {
  if (typeof tree !== "object" || tree === null) return JSON.stringify(tree);
  if (tree instanceof JsonText) return tree.text;
  if (isList(tree)) return `[${tree.map(writeJson).join(",")}]`;
  const members: string[] = [];
  for (const [name, value] of Object.entries(tree)) {
    if (value !== undefined) members.push(`${JSON.stringify(name)}:${writeJson(value)}`);
  }
  return `{${members.join(",")}}`;
}

function isList(tree: readonly JsonTree[] | JsonBranch): tree is readonly JsonTree[] {
  return Array.isArray(tree);
}
