/** The project's pages, as text and as blocks. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The project's folder. */
export const root = join(import.meta.dirname, "../..");

/** Every page, as a path from {@link root}. */
export const pages: readonly string[] = globSync(
  ["*.md", "{docs,examples}/**/*.md", "proto/*.md"],
  {
    cwd: root,
  },
).toSorted();

/** The text of a page. */
export function readPage(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/**
 * The pages of the documentation that people write: README.md and the folder docs, without its
 * generated reference.
 */
export const writtenPages: readonly string[] = pages.filter(
  (page) =>
    page === "README.md" || (page.startsWith("docs/") && !page.startsWith("docs/reference/")),
);

/** All fenced blocks of a text, in their order. */
export function blocksIn(text: string): Block[] {
  return [...text.matchAll(/^( *)```(\S*) *(.*)\n([^]*?)^\1```$/gm)].map(
    ([, indent = "", language = "", info = "", block = ""]) => ({
      language,
      reason: /^not run: (.+)$/.exec(info)?.[1],
      text: block.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    }),
  );
}

/** The fenced blocks of these languages, in their order. */
export function blocksOf(text: string, languages: readonly string[]): Block[] {
  return blocksIn(text).filter(({ language }) => languages.includes(language));
}

/** A fenced block. */
export interface Block {
  readonly language: string;
  /**
   * The text behind `not run:` in the block's first line. Undefined: a test runs or checks the
   * block.
   */
  readonly reason: string | undefined;
  readonly text: string;
}

/** The rows of every table whose first cell is code or a number: cells without their backquotes. */
export function rowsOf(page: string): string[][] {
  return [...page.matchAll(/^\| (.*?) *\|$/gm)]
    .map(([, row = ""]) => row.split("|").map((cell) => cell.trim()))
    .map((cells) => cells.map((cell) => cell.replace(/^`([^`]*)`$/, "$1")));
}
