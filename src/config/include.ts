/** `include:` of a configuration: files with further vendors and models. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Document, isMap, isScalar, isSeq, parseDocument, Scalar, visit } from "yaml";
import { readProblem } from "./references.ts";

/** The sections that an included file may have. */
export const includedSections = ["vendors", "models"] as const;

/** A file that a configuration includes. */
export interface IncludedFile {
  /** Its name in messages. */
  readonly source: string;
  /** Absolute. */
  readonly path: string;
  /** Undefined if it cannot be read. */
  readonly text: string | undefined;
  /** Why it cannot be read; empty if it can. */
  readonly problem: string;
}

/**
 * Reads the files that a configuration includes; none if it is not YAML.
 *
 * @param main.source the name of the configuration in messages
 */
export function readIncluded(main: {
  readonly source: string;
  readonly content: string;
  readonly folder: string;
}): readonly IncludedFile[] {
  if (!/^include\s*:/m.test(main.content)) return [];
  const document = parseDocument(main.content, { prettyErrors: false, uniqueKeys: false });
  const names = isMap(document.contents) ? document.get("include", true) : undefined;
  if (document.errors.length > 0 || !isSeq(names)) return [];
  return names.items.map((item) => {
    const name = isScalar(item) ? String(item.value) : "";
    const path = resolve(main.folder, name);
    return { source: join(dirname(main.source), name), path, ...readText(path) };
  });
}

function readText(path: string): Pick<IncludedFile, "text" | "problem"> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));
    return { text, problem: "" };
  } catch (error) {
    const problem = error instanceof TypeError ? "is not valid UTF-8 text" : readProblem(error);
    return { text: undefined, problem };
  }
}

/**
 * Merges included files into one document, which means the same without them. Comments stay. A
 * document that is faulty is returned as it is, followed by the files.
 */
export function mergeIncluded(content: string, files: readonly IncludedFile[]): string {
  if (files.length === 0) return content;
  const texts = files.map(({ text = "" }) => text);
  const document = parseExact(content);
  const parts = texts.map(parseExact);
  const isFaulty = [document, ...parts].some(
    (each) => each.errors.length > 0 || !isMap(each.contents),
  );
  if (isFaulty) return [content, ...texts].join("\n");
  for (const part of parts) addSections(document, part);
  document.delete("include");
  return document.toString({ lineWidth: 0 });
}

/** Parses YAML whose numbers are written as they were read: a price is no binary number. */
function parseExact(text: string): Document {
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false }) as Document;
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value !== "number" || String(node.value) === node.source) return undefined;
      const exact = new Scalar(node.source);
      exact.type = Scalar.QUOTE_DOUBLE;
      return exact;
    },
  });
  return document;
}

function addSections(document: Document, part: Document): void {
  for (const section of includedSections) {
    const added = part.get(section, true);
    if (!isMap(added)) continue;
    const present = document.get(section, true);
    if (isMap(present) && present.items.length > 0) present.items.push(...added.items);
    else document.set(section, added);
  }
}
