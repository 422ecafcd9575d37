/** The pages are short enough to be read. The generated reference does not count. */
import { expect, it } from "vitest";
import { readPage, writtenPages } from "./page.ts";

/** Words as `wc -w` counts them. */
function wordsOf(page: string): number {
  return readPage(page)
    .split(/\s+/)
    .filter((word) => word !== "").length;
}

it("no page has more than 3,000 words", () => {
  expect(writtenPages.filter((page) => wordsOf(page) > 3_000)).toEqual([]);
});

it("README.md and docs have at most 40,000 words without the generated reference", () => {
  const total = writtenPages.reduce((sum, page) => sum + wordsOf(page), 0);
  expect(total, "shorten another page before you add to one").toBeLessThanOrEqual(40_000);
});
