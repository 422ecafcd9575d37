import { describe, expect, it } from "vitest";
import { table } from "../../../src/cli/output.ts";

describe("a table", () => {
  const head = ["ID", "TEXT", "PRICE"];
  const rows = [
    ["0000-1111", "one two three four", "1"],
    ["0000-2222", "five", "12.5"],
  ];

  it("is whole if the output is not a terminal", () => {
    expect(table(head, rows).split("\n")).toEqual([
      "ID         TEXT                PRICE",
      "0000-1111  one two three four  1",
      "0000-2222  five                12.5",
    ]);
  });

  it("wraps texts between words in a narrow terminal", () => {
    expect(table(head, rows, 28).split("\n")).toEqual([
      "ID         TEXT        PRICE",
      "0000-1111  one two     1",
      "           three four",
      "0000-2222  five        12.5",
    ]);
  });

  it("becomes a block for each row if its longest words do not fit, so that no id is cut", () => {
    expect(table(head, rows, 20).split("\n")).toEqual([
      "ID     0000-1111",
      "TEXT   one two three four",
      "PRICE  1",
      "",
      "ID     0000-2222",
      "TEXT   five",
      "PRICE  12.5",
    ]);
  });
});
