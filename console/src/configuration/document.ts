/**
 * A configuration document as text, with changes that keep the rest of it as it was written:
 * comments, order and spaces. A value is replaced in its place; only if its entry changes its
 * shape, the lines of this entry are written anew.
 */
import {
  Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  Pair,
  parseDocument,
  Scalar,
  visit,
  YAMLMap,
  YAMLSeq,
} from "yaml";

/** Position of a value: map keys and list indexes from the root on. */
export type Path = readonly (string | number)[];

/** A value to write. Numbers and booleans are written without quotes, amounts with them. */
export type Value =
  | string
  | number
  | boolean
  | readonly Value[]
  | { readonly [key: string]: Value };

/** A value as texts, with the keys of its maps in their order. */
export type Tree = string | readonly Tree[] | ReadonlyMap<string, Tree>;

/** The sections whose entries have names; each other section is one entry. */
const named: readonly unknown[] = ["vendors", "models", "price_lists"];

/** Texts are as they were written, and lines are not broken. */
const written = { lineWidth: 0, verifyAliasOrder: false, flowCollectionPadding: true } as const;

/** Texts instead of numbers: `0.10` and `1e3` stay as they were written. */
const parsing = { schema: "failsafe", prettyErrors: false } as const;

/** A document that forms read and change. */
export class ConfigText {
  readonly text: string;
  readonly #lines = new LineCounter();
  #parsed: Document | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** Parsed on first use: typing in the text area needs the text only. */
  get #document(): Document {
    this.#parsed ??= parseDocument(this.text, { ...parsing, lineCounter: this.#lines });
    return this.#parsed;
  }

  /** Whether it is no valid YAML, so that forms cannot change it. */
  get isBroken(): boolean {
    return this.#document.errors.length > 0;
  }

  /** The text of a scalar; empty if there is none. */
  textAt(path: Path): string {
    const node = this.#nodeAt(path);
    return isScalar(node) ? textOf(node) : "";
  }

  /** The keys of a map, in its order. */
  keysAt(path: Path): string[] {
    const node = this.#nodeAt(path);
    return isMap(node) ? node.items.map(({ key }) => keyOf(key)) : [];
  }

  /** The number of items of a list; undefined if it is no list. */
  sizeAt(path: Path): number | undefined {
    const node = this.#nodeAt(path);
    return isSeq(node) ? node.items.length : undefined;
  }

  /** Whether a list or a map is there. */
  isCollectionAt(path: Path): boolean {
    return isCollection(this.#nodeAt(path));
  }

  /** A value as a tree of texts; undefined if there is none. */
  treeAt(path: Path): Tree | undefined {
    const node = this.#nodeAt(path);
    return node === undefined ? undefined : toTree(node, this.#document);
  }

  /** The line of a key, counted from 1; 0 if it is not there. */
  lineAt(path: Path): number {
    const range = this.#pairAt(this.#document, path)?.key.range;
    return range ? this.#lines.linePos(range[0]).line : 0;
  }

  /** Whether an entry uses aliases: a change of it would change other entries too. */
  isShared(path: Path): boolean {
    const node = this.#nodeAt(path);
    let found = false;
    if (node !== undefined) {
      visit(node, {
        Alias: () => {
          found = true;
          return visit.BREAK;
        },
      });
    }
    return found;
  }

  /** The text with another value, or without it if the value is undefined. */
  with(path: Path, value: Value | undefined): string {
    const node = this.#nodeAt(path);
    if (value !== undefined && !isTree(value) && isScalar(node)) {
      const inPlace = this.#replaced(node, value);
      if (inPlace !== undefined) return inPlace;
    }
    return this.changed(path, (document) => {
      if (value === undefined) remove(document, path);
      else set(document, path, nodeOf(value));
    });
  }

  /** The text with the value that another document has at a path, or without it. */
  withFrom(other: ConfigText, path: Path): string {
    const node = other.#nodeAt(path);
    return this.changed(path, (document) => {
      if (node === undefined) remove(document, path);
      else set(document, path, node.clone() as Node);
    });
  }

  /**
   * The text with one more price at the end of a list of prices: the last one with another start. A
   * single price becomes a list.
   */
  withPriceFrom(path: Path, from: string): string {
    return this.changed(path, (document) => {
      const present = document.getIn(path, true);
      const list = isSeq(present) ? present : new YAMLSeq();
      if (isCollection(present) && !isSeq(present)) list.items.push(present);
      const last = list.items.at(-1);
      const next = isMap(last) ? (last.clone() as YAMLMap) : new YAMLMap();
      next.delete("from");
      next.items.unshift(new Pair(new Scalar("from"), nodeOf(from)));
      list.items.push(next);
      set(document, path, list);
    });
  }

  /** The text after a change of the entry that a path is in; everything else stays as it is. */
  changed(path: Path, change: (document: Document) => void): string {
    const document = parseDocument(this.text, parsing) as Document;
    change(document);
    const entry = path.slice(0, named.includes(path[0]) ? 2 : 1);
    return this.#withEntry(entry, document) ?? document.toString(written);
  }

  /** Replaces a scalar in its place, with its quotes. */
  #replaced(node: Scalar, value: string | number | boolean): string | undefined {
    const [start, end] = node.range ?? [0, 0];
    const isPlain = node.type === "PLAIN" && end > start;
    if (!isPlain && node.type !== "QUOTE_DOUBLE" && node.type !== "QUOTE_SINGLE") return undefined;
    const text = isPlain && isBare(String(value)) ? String(value) : JSON.stringify(String(value));
    return this.text.slice(0, start) + text + this.text.slice(end);
  }

  /** Replaces, adds or removes the lines of one entry; undefined if it has no own lines. */
  #withEntry(entry: Path, changed: Document): string | undefined {
    const parent = entry.length === 1 ? this.#document.contents : this.#nodeAt(entry.slice(0, -1));
    if (!isMap(parent) || parent.flow === true || parent.items.length === 0) return undefined;
    const before = this.#pairAt(this.#document, entry);
    const after = this.#pairAt(changed, entry);
    const pairs = parent.items as Pair<Node, Node>[];
    const [first] = pairs;
    const { col } = this.#lines.linePos(first?.key.range?.[0] ?? 0);
    const [start, end] = rangeOf(before ?? pairs.at(-1));
    if (after === undefined && parent.items.length === 1) return undefined;
    const lines = after === undefined ? "" : linesOf(after, col - 1);
    if (before !== undefined) {
      const from = after === undefined ? this.#startOfEntry(start, before === first) : start;
      return this.text.slice(0, from) + lines.trimStart() + this.text.slice(end);
    }
    const head = this.text.slice(0, end);
    return `${head.endsWith("\n") ? head : `${head}\n`}${lines}${this.text.slice(end)}`;
  }

  /**
   * The start of the lines of an entry, with the comments right above it. Those above the first one
   * can be about all of them.
   */
  #startOfEntry(offset: number, isFirst: boolean): number {
    const head = this.text.slice(0, this.text.lastIndexOf("\n", offset - 1) + 1);
    const comments = /(?:^[ \t]*#.*\n)+$(?![^])/m.exec(head)?.[0] ?? "";
    return head.length - (isFirst ? 0 : comments.length);
  }

  #nodeAt(path: Path): Node | undefined {
    let node = this.#resolved(this.#document.contents);
    for (const step of path) {
      if (isSeq(node)) node = this.#resolved(node.items[Number(step)]);
      else if (isMap(node)) node = this.#resolved(pairOf(node, step)?.value);
      else return undefined;
    }
    return node;
  }

  #pairAt(document: Document, path: Path): Pair<Node, Node> | undefined {
    let node: unknown = document.contents;
    for (const step of path.slice(0, -1)) {
      node = isMap(node) ? pairOf(node, step)?.value : undefined;
    }
    return isMap(node) ? (pairOf(node, path.at(-1) ?? "") as Pair<Node, Node>) : undefined;
  }

  #resolved(node: unknown): Node | undefined {
    if (isAlias(node)) return node.resolve(this.#document);
    return (node as Node | null) ?? undefined;
  }
}

function pairOf(map: YAMLMap, step: string | number): Pair | undefined {
  return map.items.find(({ key }) => keyOf(key) === String(step));
}

function rangeOf(pair: Pair<Node, Node | null> | undefined): [number, number] {
  const { key, value } = pair ?? {};
  return [key?.range?.[0] ?? 0, value?.range?.[2] ?? key?.range?.[2] ?? 0];
}

/** The lines of one entry, without the comments above it. */
function linesOf({ key, value }: Pair<Node, Node>, indent: number): string {
  const alone = new Document(undefined, parsing);
  const name = new Scalar(keyOf(key));
  const map = new YAMLMap();
  map.items.push(new Pair(name, value));
  visit(map, {
    Scalar(_key, scalar) {
      // In this schema, a key without a value would become an empty text.
      if (scalar.type === "PLAIN" && scalar.value === "") scalar.value = "~";
    },
  });
  alone.contents = map as never;
  return alone.toString(written).replaceAll(/^(?=.)/gm, " ".repeat(indent));
}

function remove(document: Document, path: Path): void {
  document.deleteIn(path);
  // A section without a value is removed too, but no entry, and not the section of all entries.
  const parent = path.slice(0, -1);
  const least = named.includes(path[0]) ? 2 : 0;
  if (parent.length <= least) return;
  const left = document.getIn(parent, true);
  if (isCollection(left) && left.items.length === 0) remove(document, parent);
}

function set(document: Document, path: Path, node: Node): void {
  for (let length = 1; length < path.length; length += 1) {
    const above = document.getIn(path.slice(0, length), true);
    if (isScalar(above)) document.deleteIn(path.slice(0, length));
    // A map written as `{}` grows by lines.
    else if (isMap(above) && above.items.length === 0) above.flow = false;
  }
  document.setIn(path, node);
}

/** A text that needs no quotes, wherever it is. Numbers are texts in this schema. */
function isBare(text: string): boolean {
  return (
    /^[A-Za-z0-9./_][A-Za-z0-9./_:@+-]*$/.test(text) && !/^(?:null|true|false)$|:$/i.test(text)
  );
}

function isTree(value: Value): value is readonly Value[] | { readonly [key: string]: Value } {
  return typeof value === "object";
}

function nodeOf(value: Value): Node {
  if (Array.isArray(value)) {
    const list = new YAMLSeq();
    list.items.push(...(value as readonly Value[]).map((each) => nodeOf(each)));
    return list;
  }
  if (isTree(value)) {
    const map = new YAMLMap();
    for (const [key, each] of Object.entries(value)) {
      map.items.push(new Pair(new Scalar(key), nodeOf(each)));
    }
    return map;
  }
  const scalar = new Scalar(String(value));
  const isPlain = typeof value !== "string" || (isBare(value) && !/^[\d.]+$/.test(value));
  scalar.type = isPlain ? "PLAIN" : "QUOTE_DOUBLE";
  return scalar;
}

function toTree(node: unknown, document: Document): Tree {
  if (isAlias(node)) return toTree(node.resolve(document), document);
  if (isSeq(node)) return node.items.map((item) => toTree(item, document));
  if (!isMap(node)) return isScalar(node) ? textOf(node) : "";
  return new Map(node.items.map(({ key, value }) => [keyOf(key), toTree(value, document)]));
}

/** Every scalar is a text in this schema; an empty one if it means no value. */
function textOf({ value, type }: Scalar): string {
  if (typeof value !== "string" || (type === "PLAIN" && /^(?:~|null)$/i.test(value))) return "";
  return value;
}

/** The name of a key; of one that was just added, it is a plain string. */
function keyOf(key: unknown): string {
  if (isScalar(key)) return textOf(key);
  return typeof key === "string" ? key : "";
}
