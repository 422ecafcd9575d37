/**
 * The words of retired-words.md: a retired word returns to no name of a file, a folder or an
 * export. It is the only list, so a word is retired by one row there. A first cell in
 * italics is not checked: the word is legitimate in other contexts.
 */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

/** A retired word or name, and its replacement. */
interface Retired {
  readonly word: string;
  readonly words: string;
  readonly use: string;
}

/** A name in src with its words, and the file that has it. */
interface Name {
  readonly name: string;
  readonly words: string;
  readonly file: string;
}

const list = readFileSync(join(root, "test/retired-words.md"), "utf8");
const retired = readRetired(list);
const names = readNames();

/** Reads the rows `| retired | use |`, without those in italics. */
function readRetired(page: string): Retired[] {
  const rows = [...page.matchAll(/^\|([^|]+)\|([^|]+)\|\s*$/gm)];
  return rows
    .map(([, word = "", use = ""]) => ({ word: word.replaceAll("`", "").trim(), use: use.trim() }))
    .filter(({ word }) => word !== "retired" && !/^(?:-+|\*.*\*|_.*_)$/.test(word))
    .map(({ word, use }) => ({ word, words: wordsOf(word), use }));
}

/** Lists the names of all files, folders and exports of src. */
function readNames(): Name[] {
  const files = globSync(["src/**/*.{ts,tsx}", "console/**/*.{ts,tsx}"], { cwd: root }).toSorted();
  const folders = [...new Set(files.map((file) => dirname(file)))];
  const found = [
    ...folders.map((folder) => ({ name: basename(folder), file: folder })),
    ...files.map((file) => ({ name: basename(file).replace(/\.tsx?$/, ""), file })),
    ...files.flatMap((file) =>
      exportsOf(readFileSync(join(root, file), "utf8")).map((name) => ({ name, file })),
    ),
  ];
  return found.map(({ name, file }) => ({ name, words: wordsOf(name), file }));
}

/** The names that a file declares and exports. */
function exportsOf(text: string): string[] {
  const declaration =
    /^export (?:declare |abstract |async )*(?:function\*?|class|interface|type|const|let|enum) (\w+)/gm;
  return [...text.matchAll(declaration)].map(([, name = ""]) => name);
}

/** The words of a name in lower case: `SignInLink`, `sign-in-link` and "sign in link" are equal. */
function wordsOf(name: string): string {
  const spaced = name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  return ` ${spaced
    .toLowerCase()
    .split(/[\s_.-]+/)
    .join(" ")} `;
}

/** Whether a name has a retired word as a whole word, or the words of a longer one in a row. */
function hasWord(name: string, word: string): boolean {
  return wordsOf(name).includes(wordsOf(word));
}

test("no file, folder or export of src is named with a retired word", () => {
  const found = names.flatMap(({ name, words, file }) =>
    retired
      .filter((each) => words.includes(each.words))
      .map(({ word, use }) => `${file}: \`${name}\` has the retired word "${word}": use ${use}`),
  );
  expect(found).toEqual([]);
});

test("the list retires each word once, with a replacement that is not retired itself", () => {
  const words = retired.map(({ word }) => word);
  expect(words.length).toBeGreaterThan(40);
  expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
  const replaced = retired.filter(({ use }) =>
    use.split(",").some((each) => words.includes(each.replace(/\(.*/, "").trim())),
  );
  expect(replaced).toEqual([]);
});

test("a retired word is found in camelCase, in PascalCase and in kebab-case, but not inside another word", () => {
  const found = ["createWireDoor", "WireDoor", "wire-door", "door"];
  expect(found.filter((name) => !hasWord(name, "Door"))).toEqual([]);
  const passed = ["indoor", "Doorway", "outdoor-lamp"];
  expect(passed.filter((name) => hasWord(name, "Door"))).toEqual([]);
  expect(hasWord("pickUpTask", "pick up")).toBe(true);
  expect(hasWord("lookUpKey", "look at")).toBe(false);
});

test("the words are read from the table, without its rows in italics", () => {
  const page =
    "# Words\n\n| retired | use |\n|---|---|\n| `Door` | adapter |\n| *look* | check |\n";
  expect(readRetired(page)).toMatchObject([{ word: "Door", use: "adapter" }]);
});

test("every kind of export is read, and names of all kinds are found in src", () => {
  const kinds = ["const a", "class b", "abstract class c", "type d", "interface e", "enum f"];
  const text = [...kinds, "function g", "async function h", "async function* i"];
  expect(exportsOf(text.map((each) => `export ${each}\n`).join(""))).toEqual(
    Array.from("abcdefghi"),
  );
  const all = names.map(({ name }) => name);
  expect(all).toEqual(expect.arrayContaining(["routing", "hold-monitor", "HoldMonitor"]));
});
