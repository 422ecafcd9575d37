/** Files for spreadsheets: what comes out is what went in, and no cell is a formula. */
import { array, assert, property, string } from "fast-check";
import { expect, test } from "vitest";
import { csvOf } from "../../../../console/src/common/csv.ts";

/** Reads a file as RFC 4180 says. */
function read(csv: string): string[][] {
  const lines: string[][] = [[]];
  for (const [, quoted, plain = "", end] of csv.matchAll(
    /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g,
  )) {
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === "\r\n") lines.push([]);
  }
  return lines.slice(0, -1);
}

test("every cell is read as it was written", () => {
  const cells = array(string(), { minLength: 2, maxLength: 2 });
  assert(
    property(cells, (line) => {
      const [, got = []] = read(csvOf(["a", "b"], [line]));
      // The apostrophe that guards a formula is the one thing that is added.
      expect(got.map((cell, index) => (cell === line[index] ? cell : cell.slice(1)))).toEqual(line);
    }),
  );
});

test("what a spreadsheet would take for a formula is text, and a negative amount stays a number", () => {
  const [, line] = read(csvOf(["a"], [["=1+1", "+1", "@SUM(A1)", "-2+3", "-2.50"]]));
  expect(line).toEqual(["'=1+1", "'+1", "'@SUM(A1)", "-2+3", "-2.50"]);
});
