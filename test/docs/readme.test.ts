/** README.md is short, and CONTRIBUTING.md lists the scripts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, readPage, root } from "./page.ts";

describe("README.md", () => {
  it("shows a first call and a program, which other tests run", () => {
    for (const language of ["sh", "js"]) {
      const blocks = blocksOf(readPage("README.md"), [language]);
      expect(blocks.filter(({ reason }) => reason === undefined)).not.toEqual([]);
    }
  });

  it("is short enough to be read at once", () => {
    expect(readPage("README.md").split("\n").length).toBeLessThanOrEqual(200);
  });
});

describe("CONTRIBUTING.md", () => {
  it("names scripts that exist, and every script", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const named = [
      ...readPage("CONTRIBUTING.md").matchAll(/^\| `npm (?:run )?([a-z:]+)` \|/gm),
    ].map(([, script = ""]) => script);
    const parts = new Set(["lint", "types"]); // of `check`
    const expected = Object.keys(scripts).filter((name) => !parts.has(name));
    expect(named.toSorted()).toEqual(expected.toSorted());
  });
});
