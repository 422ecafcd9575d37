/** The tables of the pages say what the code says. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errorMeanings } from "../../src/core/errors.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { readPage, root, rowsOf } from "./page.ts";

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

describe("docs/operations.md", () => {
  const rows = rowsOf(readPage("docs/operations.md")).filter(([name = ""]) => /^uas_/.test(name));

  it("lists exactly the metrics that there are, with their labels", async () => {
    const { registry } = createMetrics();
    const own = (await registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith("uas_"));
    const gauges = globSync("src/**/*.ts", { cwd: root }).flatMap((file) =>
      [...readFileSync(join(root, file), "utf8").matchAll(/\.gauge\(\s*"(uas_\w+)"/g)].map(
        ([, name = ""]) => name,
      ),
    );
    const names = [...own.map(({ name }) => name), ...gauges];
    expect(rows.map(([name = ""]) => name).toSorted()).toEqual(names.toSorted());
    const labels = readFileSync(join(root, "src/observe/metrics.ts"), "utf8");
    for (const [name = "", written = ""] of rows) {
      const [, declared = ""] =
        new RegExp(`name: "${name}",[^}]*?labelNames: \\[([^\\]]*)\\]`).exec(labels) ?? [];
      const list = (text: string): string[] => text.match(/\w+/g) ?? [];
      expect(list(written), name).toEqual(list(declared));
    }
  });
});
