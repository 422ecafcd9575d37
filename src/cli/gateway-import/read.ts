/**
 * Parses the files of other gateways. Messages of parsers quote the file, which may contain
 * secrets: only the place and the kind of fault are reported.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { LineCounter, isMap, isNode, isSeq, parseDocument } from "yaml";
import { failureMessage } from "../../core/error-words.ts";
import { CliError } from "../failure.ts";
import { parseExactJson } from "../price-import/genai-prices.ts";

/** Reads a file. @throws CliError if it cannot be read */
export function readText(cwd: string, path: string): string {
  try {
    return readFileSync(resolve(cwd, path), "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    throw new CliError(`cannot read ${path}: ${failureMessage(error)}`, { cause: error });
  }
}

/** A parsed YAML file. */
export interface YamlFile {
  readonly value: unknown;
  /** The line of a value, from 1 on; undefined if there is none. */
  readonly lineOf: (path: readonly (string | number)[]) => number | undefined;
}

/** @throws CliError with the line if it is not YAML */
export function parseYaml(text: string, name: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0]);
    const what = fault.code.toLowerCase().replaceAll("_", " ");
    throw new CliError(`${name}:${line}:${col}: not YAML (${what}): correct this line`);
  }
  const lineOf = (path: readonly (string | number)[]): number | undefined => {
    const node: unknown = document.getIn(path, true);
    const start = isNode(node) ? node.range?.[0] : undefined;
    if (start === undefined) return undefined;
    // A block collection may begin after its dash or key: the first item has the line to show.
    const isEmpty = (isMap(node) || isSeq(node)) && node.items.length === 0;
    return isEmpty ? undefined : lines.linePos(start).line;
  };
  return { value: plainValue(document, name), lineOf };
}

function plainValue(document: ReturnType<typeof parseDocument>, name: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    const message = `${name}: an alias has no anchor, or there are too many: write its value instead`;
    throw new CliError(message, { cause: error });
  }
}

/** @throws CliError with the line if it is not JSON */
export function parseJson(text: string, name: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    const offset = /at position (\d+)/.exec(failureMessage(error))?.[1];
    const before = text.slice(0, offset === undefined ? text.length : Number(offset));
    const line = before.split("\n").length;
    throw new CliError(`${name}:${line}: not JSON: export the channels again`, { cause: error });
  }
}
