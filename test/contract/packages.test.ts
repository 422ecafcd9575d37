/** The files of the contract suit every generator, and its page names every package. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readPage, root, rowsOf } from "../docs/page.ts";

const files = globSync("proto/uas/**/*.proto", { cwd: root }).toSorted();
const packageOf = (file: string): string => file.split("/").slice(1, -1).join(".");

test.each(files)("%s names its package for Go, Java and C#", (file) => {
  const name = packageOf(file);
  const parts = name.split(".");
  const text = readFileSync(join(root, file), "utf8");
  const options = [...text.matchAll(/^option (\w+) = (.+);$/gm)].map(([, key, value]) => [
    key,
    value,
  ]);
  expect(Object.fromEntries(options)).toEqual({
    csharp_namespace: `"${parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join(".")}"`,
    go_package: `"uas-gateway/client/${parts.join("/")};${parts.slice(1).join("")}"`,
    java_multiple_files: "true",
    java_package: `"com.${name}"`,
  });
});

test("proto/README.md has a row for every package, and begins with a name that it declares", () => {
  const rows = rowsOf(readPage("proto/README.md")).filter(([name = ""]) => name.startsWith("uas."));
  expect(rows.map(([name = ""]) => name).toSorted()).toEqual([...new Set(files.map(packageOf))]);
  for (const [name = "", , first = ""] of rows) {
    const texts = files
      .filter((file) => packageOf(file) === name)
      .map((file) => readFileSync(join(root, file), "utf8"));
    expect(texts.join("\n"), name).toMatch(new RegExp(`^(?:service|message|enum) ${first} `, "m"));
  }
});
