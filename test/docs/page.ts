/** The project's pages, as text and as blocks. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The project's folder. */
export const root = join(import.meta.dirname, "../..");

/** Every page, as a path from {@link root}. */
export const pages: readonly string[] = globSync(["*.md", "docs/**/*.md"], {
  cwd: root,
}).toSorted();

/** The text of a page. */
export function readPage(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The fenced blocks of these languages, in their order. */
export function blocksOf(page: string, languages: readonly string[]): Block[] {
  return [...page.matchAll(/^```(\w+)\n([^]*?)^```/gm)]
    .map(([, language = "", text = ""]) => ({ language, text }))
    .filter(({ language }) => languages.includes(language));
}

/** A fenced block. */
export interface Block {
  readonly language: string;
  readonly text: string;
}

/** The rows of every table whose first cell is code or a number: cells without their backquotes. */
export function rowsOf(page: string): string[][] {
  return [...page.matchAll(/^\| (.*?) *\|$/gm)]
    .map(([, row = ""]) => row.split("|").map((cell) => cell.trim()))
    .map((cells) => cells.map((cell) => cell.replace(/^`([^`]*)`$/, "$1")));
}
