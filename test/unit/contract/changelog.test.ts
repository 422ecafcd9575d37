import { expect, test } from "vitest";
import {
  acceptChanges,
  keptPart,
  releasesOf,
  writeChangelog,
} from "../../../tools/contract/changelog.ts";

const sections = [{ heading: "Added", lines: ["Added: field `x`."] }];
const first = writeChangelog(sections, "## 0.2.0 (2027-01-01)\n\nThe first.\n");

test("unreleased changes are replaced, and former releases stay", () => {
  const second = writeChangelog([], keptPart(first));
  expect(second).not.toContain("field `x`");
  expect(second).toContain("## Unreleased\n\nNothing.\n\n## 0.2.0 (2027-01-01)\n\nThe first.\n");
});

test("an accepted version has the changes under its own heading, above older ones", () => {
  const accepted = { version: "0.3.0", date: "2027-02-01", reason: undefined };
  const text = writeChangelog([], acceptChanges(sections, keptPart(first), accepted));
  expect(text).toContain(
    "## Unreleased\n\nNothing.\n\n## 0.3.0 (2027-02-01)\n\n**Added**\n\n- Added: field `x`.\n\n## 0.2.0",
  );
  expect(releasesOf(text)).toEqual(["0.3.0", "0.2.0"]);
});

test("breaking changes that are accepted before a release stay, with their reason", () => {
  const accepted = { version: undefined, date: "2027-02-01", reason: "nobody used it" };
  const text = writeChangelog([], acceptChanges(sections, keptPart(first), accepted));
  expect(text).toContain("Breaking changes were accepted: nobody used it\n\n**Added**");
  expect(writeChangelog([], keptPart(text))).toBe(text);
  expect(releasesOf(text)).toEqual(["0.2.0"]);
});
