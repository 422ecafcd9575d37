/**
 * Plain English in comments, messages, test names and pages: the phrases that retired-phrases.md
 * lists, sentences of at most 30 words, and comment lines of at most 100 columns.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

const wordsMax = 30;
const columnsMax = 100;

/** A passage of prose, and the line where it begins. */
interface Passage {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** A retired phrase as a pattern of whole words, and its replacement. */
interface Phrase {
  readonly pattern: RegExp;
  readonly use: string;
}

/** Reads the rows `| phrase | use |`. */
function readPhrases(list: string): Phrase[] {
  const rows = [...list.matchAll(/^\|([^|]+)\|([^|]+)\|\s*$/gm)].slice(2);
  return rows.flatMap(([, phrases = "", use = ""]) =>
    phrases.split(",").map((phrase) => ({
      pattern: new RegExp(String.raw`(?<![\w-])${phrase.trim()}(?![\w-])`, "i"),
      use: use.trim(),
    })),
  );
}

const comment = {
  code: /(?<=^[ \t]*)\/\*[^]*?\*\/|(?<=^[ \t]*)\/\/.*(?:\n[ \t]*\/\/.*)*/gm,
  sql: /(?<=^[ \t]*)--.*(?:\n[ \t]*--.*)*/gm,
};

/** Returns the comments of a file, without their marks. */
function commentsOf(file: string, source: string): Passage[] {
  const pattern = file.endsWith(".sql") ? comment.sql : comment.code;
  return [...source.matchAll(pattern)].map((match) => ({
    file,
    line: lineOf(source, match.index),
    text: match[0].replaceAll(/^[ \t]*(?:\/\*\*?|\*\/|\*|\/\/|--) ?|\*\/$/gm, ""),
  }));
}

/** Returns the texts of a file that people read: string literals of at least three words. */
function messagesOf(file: string, source: string): Passage[] {
  const code = source.replaceAll(comment.code, (text) => text.replaceAll(/[^\n]/g, " "));
  const literal = /"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;
  return [...code.matchAll(literal)]
    .map((match) => ({
      file,
      line: lineOf(code, match.index),
      text: match[1] ?? match[2] ?? "",
    }))
    .filter(
      ({ text }) => text.split(" ").length > 2 && !/^\s*(?:select|insert|update|with)\b/.test(text),
    );
}

/** Returns the names of a file's tests. */
function testNamesOf(file: string, source: string): Passage[] {
  const name =
    /\b(?:it|test|describe)(?:\.\w+(?:\([^)]*\))*)?\(\s*(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)/g;
  return [...source.matchAll(name)].map((match) => ({
    file,
    line: lineOf(source, match.index),
    text: match[1] ?? match[2] ?? "",
  }));
}

/** Returns the paragraphs, list items and table rows of a page, without its code blocks. */
function paragraphsOf(file: string, source: string): Passage[] {
  const prose = source.replaceAll(/^```[^]*?^```/gm, (text) => text.replaceAll(/[^\n]/g, ""));
  return [...prose.matchAll(/(?:.+\n?)+?(?=\n|$|[ \t]*(?:[-*|]|\d+\.) )/g)].map((match) => ({
    file,
    line: lineOf(prose, match.index),
    text: match[0],
  }));
}

function lineOf(source: string, index: number): number {
  return source.slice(0, index).split("\n").length;
}

/** Splits prose into sentences. Table cells, list items and paragraphs end one. */
function sentencesOf(text: string): string[] {
  return text
    .replaceAll(/\]\([^)]*\)/g, "]")
    .replaceAll(/`[^`]*`(?:, (?:and )?| )?/g, "")
    .split(/(?<=[.!?:;]\)?)\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.) |\n?\s*\|\s*|\n@/)
    .map((sentence) => sentence.trim());
}

function read(patterns: readonly string[], passages: (file: string, source: string) => Passage[]) {
  return globSync([...patterns], { cwd: root, exclude: ["**/node_modules/**"] })
    .toSorted()
    .flatMap((file) => passages(file, readFileSync(join(root, file), "utf8")));
}

const code = ["src", "console", "test", "tools", "bench", "examples"].map(
  (folder) => `${folder}/**/*.{ts,tsx,sql}`,
);
const comments = read([...code, "proto/**/*.proto"], commentsOf);
const messages = read(["src/**/*.ts", "console/**/*.{ts,tsx}"], messagesOf);
const testNames = read(["test/**/*.test.ts"], testNamesOf);
const pages = read(["*.md", "docs/*.md", "docs/adr/*.md", "examples/**/*.md"], paragraphsOf);
const phrases = readPhrases(readFileSync(join(root, "test/retired-phrases.md"), "utf8"));

/** Lists the passages with a retired phrase. */
function retiredIn(passages: readonly Passage[]): string[] {
  return passages.flatMap(({ file, line, text }) =>
    phrases.flatMap(({ pattern, use }) => {
      const found = pattern.exec(text.replaceAll(/`[^`]*`/g, "code").replaceAll(/\s+/g, " "));
      return found === null ? [] : [`${file}:${line}: "${found[0]}": use ${use}`];
    }),
  );
}

/** Lists the sentences with too many words. */
function longIn(passages: readonly Passage[]): string[] {
  return passages.flatMap(({ file, line, text }) =>
    sentencesOf(text)
      .filter((sentence) => sentence.split(/\s+/).length > wordsMax)
      .map((sentence) => `${file}:${line}: ${sentence}`),
  );
}

test("comments use no retired phrase", () => {
  expect(retiredIn(comments)).toEqual([]);
});

test("messages of the program and texts of the console use no retired phrase", () => {
  expect(retiredIn(messages)).toEqual([]);
});

test("names of tests use no retired phrase", () => {
  expect(retiredIn(testNames)).toEqual([]);
});

test("pages use no retired phrase", () => {
  expect(retiredIn(pages)).toEqual([]);
});

test("no sentence of a comment or page has more than 30 words", () => {
  expect([...longIn(comments), ...longIn(pages)]).toEqual([]);
});

test("a comment begins with a noun or a verb, not with a question word", () => {
  const found = comments.filter(({ text }) =>
    /^\s*(?:What|Who|Whom|Whose|How (?:many|much|long|often|far))\b/.test(text),
  );
  expect(found.map(({ file, line, text }) => `${file}:${line}: ${text.trim()}`)).toEqual([]);
});

test("no line of a comment is longer than 100 columns", () => {
  const found = globSync([...code], { cwd: root }).flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        (file.endsWith(".sql") ? /^\s*--/ : /^\s*(?:\/\/|\/?\*)(?! \|)/).test(line) &&
        line.length > columnsMax &&
        !/https?:\/\//.test(line)
          ? [`${file}:${index + 1}: ${line.length} columns`]
          : [],
      ),
  );
  expect(found).toEqual([]);
});

test("the check finds a phrase across a line break, and not inside another word", () => {
  const found = (text: string) => retiredIn([{ file: "x", line: 1, text }]);
  expect(found("It is read\nby somebody\n else.")).toHaveLength(1);
  expect(found("A busybody reads it.")).toEqual([]);
});

test("comments are found in TypeScript and in SQL, strings are not", () => {
  const source = ["const a = 1; // not read", "  // one", "  // two", '/** three */ "// four"'];
  expect(commentsOf("x.ts", source.join("\n")).map(({ text }) => text.trim())).toEqual([
    "one\ntwo",
    "three",
  ]);
  expect(commentsOf("x.sql", "-- one\nselect 1 -- not read").map(({ text }) => text)).toEqual([
    "one",
  ]);
});
