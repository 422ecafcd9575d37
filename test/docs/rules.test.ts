/** The list of rules is complete. */
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { rules } from "../../tools/reference/rules.ts";
import { root } from "./page.ts";

const others = [":!docs/reference", ":!tools/reference/rules.ts", ":!third_party"];

it("docs/reference/rules.md states each rule that comments, pages and tests name, and no other", () => {
  const pattern = "R-(AUTH|[A-Z]{2,4})-[0-9]{1,2}";
  const found = execFileSync("git", ["grep", "-ohwE", pattern, "--", ...others], {
    cwd: root,
    encoding: "utf8",
  });
  const named = [...new Set(found.trim().split("\n"))];
  expect(Object.keys(rules).toSorted()).toEqual(named.toSorted());
});
