/** The shortest form of `npm run bench`: whether it still runs, not how fast anything is. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type PartName, partNames, readOptions } from "../../../bench/options.ts";
import { scenarios } from "../../../bench/scenario.ts";

const root = join(import.meta.dirname, "../../..");

/** Runs the bench with an embedded PostgreSQL of its own. */
async function bench(...args: string[]): Promise<{ code: unknown; out: string; err: string }> {
  const { DATABASE_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [join(root, "bench/main.ts"), ...args], {
    cwd: root,
    // A warm-up is for figures, and so are cores of one's own.
    env: { ...env, UAS_BENCH_CORES: "any" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, out, err };
}

/** What the short form prints; it must not fail. */
async function outputOf(...args: string[]): Promise<string> {
  const { code, err, out } = await bench("--short", ...args);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

/** The cells of the line that begins with `title`, after it. */
function cells(text: string, title: string): string[] {
  const line = text.split("\n").find((each) => each.trim().startsWith(`${title} `));
  return line === undefined
    ? []
    : line
        .trim()
        .slice(title.length)
        .trim()
        .split(/\s{2,}/);
}

const figure = /^[\d.,]+(?:×| ms)?$/;

/** What the bench prints below the title of a measurement. */
function tableOf(text: string, title: string): string {
  const [, section = ""] = text.split(`${title}\n`);
  const [table = ""] = section.split("\n\n");
  return table;
}

/** Expects a line of figures for each of the contestants. */
function expectFigures(table: string, contestants: readonly string[]): void {
  for (const name of contestants) {
    const found = cells(table.slice(table.indexOf("p50 ms")), name);
    expect(found.length).toBeGreaterThanOrEqual(5);
    for (const cell of found) expect(cell).toMatch(figure);
  }
}

describe("npm run bench -- --short", () => {
  const apart: readonly PartName[] = ["ledger", "routing", "webhooks", "log", "tasks"];
  const loads = [
    ...scenarios.map(({ name }) => name),
    ...partNames.filter((name) => !apart.includes(name)),
  ];
  const [{ name: first, title: firstTitle } = { name: "", title: "" }] = scenarios;
  let parts: string;
  let out: string;
  let compared: string;

  beforeAll(async () => {
    // At once: their figures mean nothing, and all mostly wait, for processes to start and for
    // times to pass.
    [parts, out, compared] = await Promise.all([
      outputOf("--rows", "1000", "--only", apart.join()),
      outputOf("--only", loads.join()),
      outputOf("--only", first, "--gateway", root),
    ]);
  }, 600_000);

  it.each(scenarios.map(({ title }) => title))(
    "the bench compares the gateway with the bare proxy in the scenario: %s",
    (title) => {
      const table = tableOf(out, title);
      expect(table).toMatch(/gateway: [\d.]+× \(.*\) the bare proxy's CPU/);
      expectFigures(table, ["bare proxy", "gateway"]);
    },
  );

  it("the bench compares two checkouts with each other and with the bare proxy", () => {
    const table = tableOf(compared, firstTitle);
    expect(table).toMatch(/gateway: [\d.]+× \(.*\) the bare proxy's CPU/);
    expect(table).toMatch(/other: [\d.]+× \(.*\) the bare proxy's CPU/);
    expect(table).toMatch(/gateway: [\d.]+× \(.*\) the CPU of other/);
    expectFigures(table, ["bare proxy", "gateway", "other"]);
  });

  it("the open loop reports latencies at 512 and at 2,000 connections", () => {
    for (const count of ["512", "2,000"]) {
      const table = tableOf(out, `JSON request of 2 KB, ${count} connections`);
      for (const name of ["bare proxy", "gateway"]) {
        const found = cells(table, name);
        expect(found).toHaveLength(7);
        for (const cell of found) expect(cell).toMatch(figure);
      }
    }
  });

  it.each([
    "Ledger: hold, settle and record on one hot account, fsync as it is",
    "Webhooks: ",
    "Call log of 1,000 rows",
    "Tasks: submits",
    "Routing and limits over 3 processes",
    "A 1 MB body between two styles, gateway",
    "Translating between styles",
    "Start and memory",
  ])("the bench reports beside the scenarios: %s", (title) => {
    expect(parts + out).toContain(`\n${title}`);
  });

  it("the table at the end has a figure, or a reason above it, for every limit", () => {
    const tables = [parts, out].map((each) => each.slice(each.lastIndexOf("required      target")));
    const rows: ReadonlyArray<readonly [title: string, required: string, reason?: string]> = [
      ["JSON request", "2.7×"],
      ["PostgreSQL's CPU per JSON request", "0.8×"],
      ["SSE flood, 200 chunks", "1.5×"],
      ["SSE flood, 2,000 chunks", "1.4×"],
      ["same through a native prefix", "1.5×"],
      ["paced SSE", "1.25×"],
      ["1 MB request body", "2.2×"],
      ["1 MB body translated between styles", "3×"],
      ["context switches per request", "0.2"],
      ["p99 at 512 connections, open loop at 60 % of capacity (as multiple of p50)", "20×"],
      ["throughput with two workers", "1.8×", "not measured: "],
      ["ledger: added p99 with 256 in flight and a slow disk", "25 ms", "skipped, "],
    ];
    for (const [title, required, reason] of rows) {
      const found = tables.map((table) => cells(table, title));
      for (const [, limit] of found) expect({ title, limit }).toEqual({ title, limit: required });
      const [measured = "-"] = found.find(([each]) => each !== "-") ?? [];
      if (measured === "-" && reason !== undefined) expect(parts + out).toContain(reason);
      else expect({ title, measured }).toEqual({ title, measured: expect.stringMatching(figure) });
    }
  });
});

describe("the command line of the bench", () => {
  it("--help lists every scenario and exits 0", async () => {
    const { code, out } = await bench("--help");
    expect(code).toBe(0);
    for (const { name } of scenarios) expect(out).toContain(name);
  });

  it("the call log is measured only where it is asked for", () => {
    expect(readOptions([], root).parts.has("log")).toBe(false);
    expect(readOptions(["--only", "log"], root).parts).toEqual(new Set(["log"]));
  });

  it("the warm-up is a number of requests, or of seconds", () => {
    expect(readOptions([], root).warmUp).toEqual({ requests: 20_000 });
    expect(readOptions(["--warm-up", "2.5s"], root).warmUp).toEqual({ seconds: 2.5 });
  });

  it.each([
    [["--only", "jsno"], 'nothing is called "jsno"'],
    [["--seconds", "0"], "--seconds must be a number from 0 to 600"],
    [["--warm-up", "long"], "--warm-up must be a number of requests"],
    [["--gateway", "test"], "has no bin/uas.js"],
  ])("the bench refuses %j with a message", (args, message) => {
    expect(() => readOptions(args, root)).toThrow(message);
  });
});
