/** The tables of the pages say what the code says. */
import { describe, expect, it } from "vitest";
import { errorMeanings } from "../../src/core/errors.ts";
import { readPage, rowsOf } from "./page.ts";

describe("docs/errors.md", () => {
  it("lists exactly the errors of the catalogue, in its order (R-ERR-2)", () => {
    const rows = rowsOf(readPage("docs/errors.md")).filter(([status = ""]) => /^\d+$/.test(status));
    const meanings = Object.values(errorMeanings);
    expect(rows.map(([status, code, type]) => [Number(status), code, type])).toEqual(
      meanings.map(({ status, word, type }) => [status, word, type]),
    );
    for (const [, code, , advice = ""] of rows) expect(advice, code).toMatch(/\.$/);
  });
});
