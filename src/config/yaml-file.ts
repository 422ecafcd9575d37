/** Reads YAML into its syntax tree, with every problem at its place. */
import {
  type Alias,
  type Document,
  LineCounter,
  type Node,
  type YAMLError,
  isAlias,
  parseDocument,
  visit,
} from "yaml";
import { Problems } from "./problems.ts";

/** The longest file, in characters. A thousand models take about a tenth of it. */
const charsMax = 1024 * 1024;

/** The most aliases of one file: with {@link charsMax} it bounds what they can multiply to. */
const aliasesMax = 1_000;

/** The most syntax errors that are told: the first ones are what the others follow from. */
const syntaxErrorsMax = 10;

/** A parsed file. */
export interface YamlFile {
  /** The outermost value; `null` where the file is empty. */
  readonly root: Node | null;
  /** What each alias stands for. */
  readonly aliases: ReadonlyMap<Alias, Node>;
  readonly problems: Problems;
}

/**
 * Parses a file. Duplicate keys and unknown tags are left among the problems, as the rest of the file
 * can still be judged.
 *
 * @param source how the file is called in messages
 * @throws ConfigError where the file is too large or is no YAML
 */
export function parseYaml(source: string, text: string): YamlFile {
  const lines = new LineCounter();
  const problems = new Problems(source, lines);
  if (text.length > charsMax) {
    problems.error(0, "", `the file is larger than ${charsMax} characters`);
    problems.failIfAny();
  }
  // prettyErrors would put source lines, secrets included, into the messages.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  reportSyntax([...document.errors, ...document.warnings], problems, text);
  return { root: document.contents, aliases: aliasTargets(document, problems), problems };
}

const semantic: ReadonlySet<string> = new Set(["DUPLICATE_KEY", "TAG_RESOLVE_FAILED"]);

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

/** Our own words: those of the parser can contain the text of the file. */
const explanations: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: "this key is given twice; keep one",
  TAG_RESOLVE_FAILED: "tags such as !x have no meaning here; remove it",
  TAB_AS_INDENT: "a tab cannot indent; use spaces",
  BAD_INDENT: "wrong indentation, or a bracket that is not closed",
  MISSING_CHAR: "a bracket, quote, comma or colon is missing",
  MULTIPLE_DOCS: "the file holds several documents (---); keep one",
  BAD_DQ_ESCAPE:
    'unknown escape in a "quoted" text; write \\\\ for a backslash, or use single quotes',
  BAD_SCALAR_START: "a value cannot start with this character; put it in quotes",
  RESOURCE_EXHAUSTION: "nested too deeply",
};

function explain(code: string, line: string): string {
  const text = explanations[code] ?? "this is no valid YAML";
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
      if (target === undefined) problems.error(node, "", "no anchor of this name stands before it");
      else targets.set(node, target);
    },
  });
  if (count > aliasesMax) problems.error(0, "", `more than ${aliasesMax} aliases (*name)`);
  if (count > aliasesMax) problems.failIfAny();
  return targets;
}
