/** The shortest form of `npm run bench`: that it still runs, not how fast anything is. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, it } from "vitest";
import { missingTools } from "../../../bench/native-tools.ts";
import { readOptions } from "../../../bench/options.ts";
import { scenarios } from "../../../bench/scenario.ts";
import { median, ratioOf } from "../../../bench/statistics.ts";

const root = join(import.meta.dirname, "../../..");

/** Runs the bench with a separate embedded PostgreSQL. */
async function bench(
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<{ code: unknown; out: string; err: string }> {
  const { DATABASE_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [join(root, "bench/main.ts"), ...args], {
    cwd: root,
    env: { ...env, ...more, UAS_BENCH_CORES: "any" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code]: unknown[] = await closed;
  return { code, out, err };
}

/** The cells of the line that begins with `title`, after it. */
function cells(page: string, title: string): string[] {
  const line = page.split("\n").find((each) => each.trim().startsWith(`${title} `));
  return (
    line
      ?.trim()
      .slice(title.length)
      .trim()
      .split(/\s{2,}/) ?? []
  );
}

const figure = /^-?[\d.,]+(?:×| ms)?$/;

/** Returns the output below the title of a measurement. */
function tableOf(page: string, title: string): string {
  const [, section = ""] = page.split(`${title}\n`);
  const [table = ""] = section.split("\n\n");
  return table;
}

/** Expects a line of figures for each of the contestants. */
function expectFigures(table: string, contestants: readonly string[], columns: number): void {
  for (const name of contestants) {
    const found = cells(table.slice(table.indexOf("p50 ms")), name);
    expect(found.length).toBeGreaterThanOrEqual(columns);
    for (const cell of found) expect(cell).toMatch(figure);
  }
}

describe.skipIf(missingTools() !== undefined)("npm run bench -- --short", () => {
  let page: string;

  beforeAll(async () => {
    const { code, err, out } = await bench(["--short", "--gateway", root]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    page = out;
  });

  it.each(scenarios.map(({ title }) => title))(
    "the bench compares two gateways with the bare proxy and with each other in the scenario: %s",
    (title) => {
      const table = tableOf(page, title);
      expect(table).toMatch(/gateway: [\d.]+× \(.*\) the bare proxy's CPU/);
      expect(table).toMatch(/other: [\d.]+× \(.*\) the bare proxy's CPU/);
      expect(table).toMatch(/gateway: [\d.]+× \(.*\) the CPU of other/);
      expectFigures(table, ["bare proxy", "gateway", "other"], 5);
    },
  );

  it("the bench says how much faster than the bare proxy its vendor and load generator are", () => {
    expect(page).toMatch(/wrk and nginx alone: [\d,]+ requests\/s, [\d.]+ times as many/);
  });

  it("the open loop reports latencies at 512 connections", () => {
    const table = tableOf(page, "JSON request of 2 KB, 512 connections");
    expectFigures(table, ["bare proxy", "gateway", "other"], 7);
  });

  it("the bench reports the time that rate limits add", () => {
    expect(page).toMatch(/-?[\d.]+ ms more than the [\d.]+ ms of a key without limits, at p50/);
  });

  it("the table at the end has a figure for every limit", () => {
    const table = page.slice(page.lastIndexOf("measured    required"));
    const rows: ReadonlyArray<readonly [title: string, required: string]> = [
      ...scenarios.map(({ title, required }) => [title, `${required}×`] as const),
      ["PostgreSQL's CPU per JSON request", "0.7×"],
      ["p99 at 512 connections, open loop at 60 % of capacity (as multiple of p50)", "20×"],
      ["time that rate limits add at p50", "1 ms"],
    ];
    for (const [title, required] of rows) {
      const [measured, limit] = cells(table, title);
      expect({ title, limit }).toEqual({ title, limit: required });
      expect({ title, measured }).toEqual({ title, measured: expect.stringMatching(figure) });
    }
  });
});

describe("the command line of the bench", () => {
  it("--help lists every scenario and exits 0", async () => {
    const { code, out } = await bench(["--help"]);
    expect(code).toBe(0);
    for (const { name } of scenarios) expect(out).toContain(name);
  });

  it.runIf(process.platform === "linux")(
    "without wrk and nginx the bench says in one sentence what to install",
    async () => {
      const { code, err, out } = await bench([], { PATH: "/nowhere" });
      expect({ code, err, out }).toEqual({
        code: 2,
        err: "The bench needs wrk and nginx: apt-get install wrk nginx.\n",
        out: "",
      });
    },
  );

  it.each([
    [["--only", "jsno"], 'nothing is called "jsno"'],
    [["--seconds", "0.5"], "--seconds must be a whole number from 1 to 999"],
    [["--gateway", "test"], "has no bin/uas.js"],
  ])("the bench refuses %j with a message", (args, message) => {
    expect(() => readOptions(args, root)).toThrow(message);
  });
});

describe("statistics of the bench", () => {
  it("a ratio is the median of the ratios within each round, not the ratio of medians", () => {
    // In the second round, other work made both take ten times as long.
    const ratio = ratioOf([20, 300, 22], [10, 100, 11]);
    expect(ratio).toEqual({ median: 2, least: 2, most: 3, quietest: 2 });
  });

  it("the median of nothing is not a number", () => {
    expect(median([])).toBeNaN();
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });
});
