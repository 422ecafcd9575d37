/** The parts of the program that a command beside a running gateway loads: few, so it is fast. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** The modules that files load with themselves: no types, no `import()`. */
function loadedWith(starts: readonly string[]): ReadonlySet<string> {
  const found = new Set(starts);
  for (const file of found) {
    if (!file.endsWith(".ts")) continue;
    const text = readFileSync(join(root, file), "utf8");
    for (const [, path = ""] of text.matchAll(
      /^(?:import|export) (?!type )(?:[^"';]*? from )?"([^"]+)"/gm,
    )) {
      found.add(path.startsWith(".") ? join(dirname(file), path) : path);
    }
  }
  return found;
}

it("neither the help nor key list loads the database, vendors or the reader of uas.yaml", () => {
  const help = [...loadedWith(["src/main.ts"])];
  expect(help.filter((each) => each.startsWith("gen/") || each.includes("connect"))).toEqual([]);
  const list = [...loadedWith(["src/main.ts", "src/cli/key.ts"])];
  expect(list).toContain("@connectrpc/connect-node");
  const heavy =
    /^src\/(?:app|db|provider|dialect)\/|^src\/config\/load\.ts$|^(?:pg|zod|yaml|@mikro-orm)/;
  expect(list.filter((each) => heavy.test(each))).toEqual([]);
});
