/** Every link between the pages leads somewhere, and every file that a page names exists. */
import { existsSync, globSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { pages, readPage, root } from "./page.ts";

/** A heading's anchor, as GitHub makes it. */
function anchor(heading: string): string {
  const plain = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "");
  return plain.trim().replaceAll(" ", "-");
}

function anchorsOf(path: string): string[] {
  const text = readPage(path).replaceAll(/^```[^]*?^```/gm, "");
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => anchor(heading));
}

test.each(pages)("the links of %s lead somewhere", (page) => {
  const links = [...readPage(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  const broken = links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file = "", hash] = link.split("#");
    const target = file === "" ? page : normalize(join(dirname(page), file));
    if (!existsSync(join(root, target))) return true;
    return hash !== undefined && !anchorsOf(target).includes(hash);
  });
  expect(broken).toEqual([]);
});

test.each(pages)("the files that %s names exist", (page) => {
  const named = [
    ...readPage(page).matchAll(/`((?:src|test|tools|bench|proto|docs|bin|gen)\/[\w./-]*)`/g),
  ];
  const missing = named
    .map(([, path = ""]) => path)
    .filter((path) => !existsSync(join(root, path)));
  expect(missing).toEqual([]);
});

test.each(pages)(
  "%s runs no command by npx: elsewhere it would download another package",
  (page) => {
    expect(readPage(page)).not.toMatch(/npx (?:\S+ )*uas/);
  },
);

test("docs/README.md lists every page of docs", () => {
  const index = readPage("docs/README.md");
  const all = pages.filter((page) => /^docs\/[^/]+$/.test(page) && page !== "docs/README.md");
  expect(all.filter((page) => !index.includes(`](${page.slice("docs/".length)})`))).toEqual([]);
});

test("docs/architecture.md: files that it names by their last part exist", () => {
  const existing = new Set(
    globSync(["src/**/*.{ts,tsx,sql}", "console/**/*.{ts,tsx}"], { cwd: root }).map((file) =>
      basename(file),
    ),
  );
  const named = [...readPage("docs/architecture.md").matchAll(/`([\w-]+\.(?:tsx?|sql))`/g)];
  const missing = named.map(([, name = ""]) => name).filter((name) => !existing.has(name));
  expect(named.length).toBeGreaterThan(20);
  expect(missing).toEqual([]);
});
