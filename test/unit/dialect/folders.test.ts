import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../../src");

/** The files of each folder below `parent`, as `folder/file`. */
function filesBelow(parent: string): string[] {
  return readdirSync(join(root, parent), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => readdirSync(join(root, parent, name)).map((file) => `${name}/${file}`));
}

/** Whether the first comment of a file gives the reason why only one folder has it. */
function hasReason(parent: string, file: string): boolean {
  const [comment = ""] = readFileSync(join(root, parent, file), "utf8").split("*/", 1);
  return /\bonly\b/i.test(comment);
}

/** Folders of what all styles share. */
const shared = new Set(["features", "operations", "tools", "turns"]);

const styleFiles = filesBelow("dialect").filter((file) => !shared.has(file.split("/")[0] ?? ""));

test("every file of a style exists in another style too, or its first comment gives the reason", () => {
  const names = styleFiles.map((file) => file.split("/")[1]);
  const unique = styleFiles.filter(
    (file) => names.filter((name) => name === file.split("/")[1]).length === 1,
  );
  expect(unique.filter((file) => !hasReason("dialect", file))).toEqual([]);
});

test("every style has the files that encode a request and decode a reply", () => {
  const styles = new Set(styleFiles.map((file) => file.split("/")[0]));
  const roles = ["dialect", "guard", "encode-request", "decode-reply", "decode-stream", "usage"];
  const expected = [...styles].flatMap((style) => roles.map((role) => `${style}/${role}.ts`));
  expect(expected.filter((file) => !styleFiles.includes(file))).toEqual([]);
});

const vendorRoles = new Set([
  ...["index", "text", "tasks", "native", "faults", "params", "meter", "embeddings", "rerank"],
]);

test("every file of a vendor has one of the roles that vendors share, or its first comment gives the reason", () => {
  const others = filesBelow("provider").filter(
    (file) =>
      !file.startsWith("media/") &&
      !vendorRoles.has((file.split("/")[1] ?? "").replace(/\.ts$/, "")),
  );
  expect(others.filter((file) => !hasReason("provider", file))).toEqual([]);
});
