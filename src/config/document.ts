/**
 * A configuration file as YAML: a tree of texts for the schemas, and the place of every value for
 * messages.
 *
 * The tree holds the source text of each scalar, not YAML's own value: a price would pass through a
 * binary float otherwise, and `0.10` or `1e3` would no longer be what the operator wrote.
 */
import {
  type Alias,
  type Document,
  LineCounter,
  type Node,
  type Pair,
  type YAMLError,
  type YAMLMap,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  visit,
} from "yaml";
import { includedSections } from "./include.ts";
import { Problems } from "./problems.ts";

/** The longest file, in characters. A thousand models take about a tenth of it. */
const charsMax = 1024 * 1024;

/** The most aliases of one file: with {@link charsMax} it bounds what they can multiply to. */
const aliasesMax = 1_000;

/** The most syntax errors that are reported: later ones usually follow from the first. */
const syntaxErrorsMax = 10;

/**
 * A value of the file: a scalar's text, a list, a map in the order of the file, or `null` for
 * nothing.
 */
export type Tree = string | null | readonly Tree[] | ReadonlyMap<string, Tree>;

/** Position of a value: map keys and list indexes from the root on, as in a zod issue. */
export type Path = readonly PropertyKey[];

/** A parsed configuration file. */
export class ConfigDocument {
  /** The whole file. */
  readonly tree: Tree;
  readonly problems: Problems;
  readonly #root: Node | null;
  readonly #aliases: ReadonlyMap<Alias, Node>;
  readonly #trees = new Map<Node, Tree>();
  readonly #pairs = new Map<YAMLMap, Map<string, Pair<Node | null, Node | null>>>();
  /** Included documents by the path of each of their vendors and models. */
  readonly #owners = new Map<string, ConfigDocument>();

  /**
   * Parses a file. Duplicate keys, unknown tags and the like are reported as problems, so that the
   * rest of the file can still be checked.
   *
   * @param source the file's name in messages
   * @param included documents whose vendors and models are added
   * @throws ConfigError if the file is too large or is not YAML
   */
  constructor(source: string, text: string, included: readonly ConfigDocument[] = []) {
    const lines = new LineCounter();
    this.problems = new Problems(source, lines);
    if (text.length > charsMax) {
      this.problems.error(0, "", `the file is larger than ${charsMax} characters`);
      this.problems.failIfAny();
    }
    // prettyErrors would put source lines, secrets included, into the messages. The library's
    // search for duplicate keys compares each with all others: 90,000 keys took over 20 s.
    const options = { lineCounter: lines, prettyErrors: false, uniqueKeys: false };
    const document = parseDocument(text, options);
    reportSyntax([...document.errors, ...document.warnings], this.problems, text);
    this.#root = document.contents;
    this.#aliases = aliasTargets(document, this.problems);
    const tree = this.#treeOf(this.#root);
    this.tree = tree instanceof Map && included.length > 0 ? this.#with(tree, included) : tree;
  }

  /** The tree with the vendors and models of included documents. */
  #with(tree: ReadonlyMap<string, Tree>, included: readonly ConfigDocument[]): Tree {
    const merged = new Map(tree);
    for (const document of included) {
      this.problems.include(document.problems);
      const sections = document.tree instanceof Map ? document.tree : new Map<string, Tree>();
      for (const [section, values] of sections) this.#add(merged, { document, section, values });
    }
    return merged;
  }

  #add(
    tree: Map<string, Tree>,
    part: { readonly document: ConfigDocument; readonly section: string; readonly values: Tree },
  ): void {
    const { document, section, values } = part;
    const present = tree.get(section) ?? new Map<string, Tree>();
    if (!includedSections.some((name) => name === section) || !(values instanceof Map)) {
      const message = "an included file has vendors: and models: only; move it to the main file";
      document.errorAtKey([section], message);
    } else if (present instanceof Map) {
      const merged = new Map(present);
      tree.set(section, merged);
      for (const [name, value] of values as ReadonlyMap<string, Tree>) {
        const message = "another file has this name, too; keep one";
        if (merged.has(name)) document.errorAtKey([section, name], message);
        else this.#owners.set(pathText([section, name]), document);
        merged.set(name, merged.get(name) ?? value);
      }
    }
  }

  /** The document that has a value. */
  #owner(path: Path): ConfigDocument | undefined {
    return this.#owners.get(pathText(path.slice(0, 2)));
  }

  /** Reports an error at a value. */
  error(path: Path, message: string): void {
    const owner = this.#owner(path);
    if (owner !== undefined) return owner.error(path, message);
    this.problems.error(this.#offsets(path).value, pathText(path), message);
  }

  /**
   * Reports an error at the key of a value; `shown` is the path to print, the value's own by
   * default.
   */
  errorAtKey(path: Path, message: string, shown: Path = path): void {
    const owner = this.#owner(path);
    if (owner !== undefined) return owner.errorAtKey(path, message, shown);
    this.problems.error(this.#offsets(path).key, pathText(shown), message);
  }

  /** Warns about a value that is accepted without effect. */
  warn(path: Path, message: string): void {
    const owner = this.#owner(path);
    if (owner !== undefined) return owner.warn(path, message);
    this.problems.warn(this.#offsets(path).value, pathText(path), message);
  }

  /** The file and line of a value's key: `uas.yaml:7`. */
  placeOf(path: Path): string {
    return this.#owner(path)?.placeOf(path) ?? this.problems.placeOf(this.#offsets(path).key);
  }

  /** Each node becomes one value, however many aliases name it: nested aliases cannot multiply. */
  #treeOf(written: Node | null): Tree {
    const node = this.#target(written);
    if (isEmpty(node)) return null;
    const known = this.#trees.get(node);
    if (known !== undefined) return known;
    if (isScalar(node)) return node.source ?? String(node.value);
    if (isSeq(node)) {
      const items: Tree[] = [];
      this.#trees.set(node, items);
      for (const item of node.items) items.push(this.#treeOf(item as Node | null));
      return items;
    }
    return isMap(node) ? this.#mapOf(node) : null;
  }

  #mapOf(node: YAMLMap): ReadonlyMap<string, Tree> {
    const map = new Map<string, Tree>();
    const pairs = new Map<string, Pair<Node | null, Node | null>>();
    this.#trees.set(node, map);
    this.#pairs.set(node, pairs);
    for (const pair of node.items as Pair<Node | null, Node | null>[]) {
      const key = this.#target(pair.key);
      if (isScalar(key)) {
        const name = key.source ?? String(key.value);
        if (map.has(name)) {
          this.problems.error(startOf(key), "", "this key is given twice; keep one");
        }
        map.set(name, this.#treeOf(pair.value));
        pairs.set(name, pair);
      } else {
        this.problems.error(startOf(pair.key ?? node), "", "a key must be a single word");
      }
    }
    return map;
  }

  /**
   * Offsets of a value and of its key. An empty value is at its key, an absent one at the map that
   * lacks it.
   */
  #offsets(path: Path): { readonly value: number; readonly key: number } {
    let node = this.#target(this.#root);
    let key = startOf(node);
    for (const step of path) {
      let value: Node | null = null;
      if (isSeq(node)) value = (node.items[Number(step)] as Node | null | undefined) ?? null;
      else if (isMap(node)) {
        const pair = this.#pairs.get(node)?.get(String(step));
        if (pair === undefined) break;
        key = startOf(pair.key ?? node);
        value = pair.value;
      }
      node = this.#target(value);
    }
    return { value: isEmpty(node) ? key : startOf(node), key };
  }

  #target(node: Node | null): Node | null {
    return isAlias(node) ? (this.#aliases.get(node) ?? null) : node;
  }
}

function isEmpty(node: Node | null): node is null {
  return node === null || (isScalar(node) && node.value === null);
}

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}

/** A path in messages: `models["gpt-4.1"].routes[0]`. */
export function pathText(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    // Model names contain dots, so without quotes the end of the name is unclear.
    else if (!/^[\w/:@+-]+$/.test(String(step))) text += `[${JSON.stringify(step)}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}

const semantic: ReadonlySet<string> = new Set(["TAG_RESOLVE_FAILED"]);

function reportSyntax(errors: readonly YAMLError[], problems: Problems, text: string): void {
  const syntax = errors.filter((error) => !semantic.has(error.code));
  const seenLines = new Set<number>();
  for (const error of syntax.length > 0 ? syntax : errors) {
    const offset = error.pos[0];
    const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
    if (semantic.has(error.code)) problems.error(offset, "", explain(error.code, ""));
    else if (!seenLines.has(lineStart) && seenLines.size < syntaxErrorsMax) {
      seenLines.add(lineStart);
      problems.error(offset, "", explain(error.code, lineAt(text, lineStart)));
    }
  }
  if (syntax.length > 0) problems.failIfAny();
}

function lineAt(text: string, start: number): string {
  const end = text.indexOf("\n", start);
  return text.slice(start, end === -1 ? undefined : end);
}

/**
 * The gateway's messages replace those of the parser, which can contain the text of the file,
 * secrets included.
 */
const explanations: Readonly<Record<string, string>> = {
  TAG_RESOLVE_FAILED: "tags such as !x have no meaning here; remove it",
  TAB_AS_INDENT: "a tab cannot indent; use spaces",
  BAD_INDENT: "wrong indentation, or a bracket that is not closed",
  MISSING_CHAR: "a bracket, quote, comma or colon is missing",
  MULTIPLE_DOCS: "the file contains several documents (---); keep one",
  BAD_DQ_ESCAPE:
    'unknown escape in a "quoted" text; write \\\\ for a backslash, or use single quotes',
  BAD_SCALAR_START: "a value cannot start with this character; put it in quotes",
  RESOURCE_EXHAUSTION: "nested too deeply",
};

function explain(code: string, line: string): string {
  const text = explanations[code] ?? "this is not valid YAML";
  const unquoted = line.includes("${") && !/["']\$\{/.test(line);
  return unquoted ? `${text}; inside { … } write "\${env:NAME}" in quotes` : text;
}

/** Resolves all aliases in one walk; the library's own look-up walks the file once per alias. */
function aliasTargets(document: Document, problems: Problems): Map<Alias, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  let count = 0;
  visit(document, {
    Node(_key, node) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
        return;
      }
      count += 1;
      const target = anchors.get(node.source);
      if (target !== undefined) targets.set(node, target);
      else problems.error(startOf(node), "", `no anchor of this name (&name) precedes this alias`);
    },
  });
  if (count > aliasesMax) problems.error(0, "", `more than ${aliasesMax} aliases (*name)`);
  if (count > aliasesMax) problems.failIfAny();
  return targets;
}
