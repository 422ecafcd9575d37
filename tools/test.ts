/**
 * Runs `npm test`: the static checks, and the tests in parallel. Each static check counts as one
 * test. If few files failed, they are run once more, alone. The last line is `N passed, N failed`,
 * with `, N skipped` if some were.
 *
 * `--static` runs the static checks only. `--browser` runs the tests in a browser only, and fails
 * without one; `--screenshots` does the same and takes pictures of every page. Every other argument
 * goes to vitest.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBrowser } from "../test/behaviour/console/find-browser.ts";
import { compareFolders } from "./compare-folders.ts";
import { type Counts, type FailedFile, readCounts, readFailedFiles } from "./counts.ts";
import { run } from "./run.ts";

/** A static check: resolves to whether it passed. */
interface Check {
  readonly name: string;
  run(folder: string): Promise<boolean>;
}

/** Maximum number of failed files that are run again; more failures have a common cause. */
const againMax = 3;

/** Longest first: the short ones fill the remaining time. */
const checks: readonly Check[] = [
  command("oxlint", "--type-aware"),
  // With one checker: several check many types twice, for cores that the tests use.
  command("tsc", "--noEmit", "--checkers", "1"),
  command("tsc", "--noEmit", "-p", "console"),
  { name: "gen and docs/reference are up to date (else: npm run generate)", run: isGenerated },
  {
    name: "the contract breaks no released part",
    run: () => succeeds("node", ["tools/contract/main.ts", "check"]),
  },
  command("buf", "lint"),
  command("buf", "format", "--diff", "--exit-code"),
  command("biome", "format", "."),
];

/**
 * Number of parallel checks. Each of the long ones reads files on one core, and then uses all
 * cores.
 */
const checksAtOnce = 2;

/** Runs everything, in a temporary folder for what it has to write, and ends the process. */
async function main(args: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "uas-check-"));
  try {
    if (args.includes("--browser") || args.includes("--screenshots")) {
      return await runBrowserTests(args.includes("--screenshots"));
    }
    const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
    const checking = runChecks(folder);
    if (!args.includes("--static")) add(counts, await runTests(folder, args, checking));
    add(counts, await checking);
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
    print(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
    process.exitCode = counts.failed > 0 ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Runs the tests of the console in a browser; if wanted with pictures of every page, in a folder
 * that stays.
 */
async function runBrowserTests(hasPictures: boolean): Promise<void> {
  process.env["UAS_TEST_BROWSER"] = "required";
  if (hasPictures) {
    const folder = mkdtempSync(join(tmpdir(), "uas-screenshots-"));
    process.env["UAS_SCREENSHOTS"] = folder;
    print(`screenshots: ${folder}`);
  }
  process.exitCode = await run("vitest", ["run", "test/behaviour/console"]);
}

async function runChecks(folder: string): Promise<Counts> {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const waiting = checks.values();
  const runNext = async (): Promise<void> => {
    for (const check of waiting) {
      const start = performance.now();
      const passed = await check.run(folder);
      print(`${passed ? "ok  " : "FAIL"} ${check.name} (${seconds(start)})`);
      if (passed) counts.passed += 1;
      else counts.failed += 1;
    }
  };
  await Promise.all(Array.from({ length: checksAtOnce }, runNext));
  return counts;
}

async function runTests(
  folder: string,
  args: readonly string[],
  checking: Promise<unknown>,
): Promise<Counts> {
  const report = join(folder, "vitest.json");
  const code = await runVitest(report, args);
  if (findBrowser() === undefined) print("browser tests: not run (there is no Chromium)");
  const counts = readCounts(report, code);
  const failed = readFailedFiles(report);
  // The second run has the machine to itself.
  await checking;
  if (failed.length > 0 && failed.length <= againMax) await runAgain(folder, failed, counts);
  return counts;
}

/**
 * Runs the files that failed once more, one after the other, and corrects the counts: a defect
 * fails both times, while a busy machine can make a single test late. What failed only the first
 * time is named, for it is worth a look.
 */
async function runAgain(
  folder: string,
  failed: readonly FailedFile[],
  counts: Counts,
): Promise<void> {
  print(`\nonce more, alone: ${failed.length} test files that failed`);
  const report = join(folder, "again.json");
  const names = failed.map(({ name }) => name);
  const again = readCounts(report, await runVitest(report, ["--no-file-parallelism", ...names]));
  for (const { counts: first } of failed) {
    add(counts, { passed: -first.passed, failed: -first.failed, skipped: -first.skipped });
  }
  add(counts, again);
  const stillFailed = new Set(readFailedFiles(report).flatMap(({ tests }) => tests));
  for (const { name, tests } of failed) {
    for (const test of tests.length > 0 ? tests : ["outside its tests"]) {
      if (!stillFailed.has(test)) print(`failed beside others only: ${name} > ${test}`);
    }
  }
}

async function runVitest(report: string, args: readonly string[]): Promise<number> {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const projects = ["--project=alone", "--project=tests"];
  return await run("vitest", ["run", ...projects, ...reporters, ...args]);
}

/** Generates aside and compares: a check must not change what it checks. */
async function isGenerated(folder: string): Promise<boolean> {
  if (!(await succeeds("buf", ["generate", "--output", folder]))) return false;
  const generated = { gen: join(folder, "gen"), "docs/reference": join(folder, "reference") };
  if (!(await succeeds("node", ["tools/openapi/main.ts", generated.gen]))) return false;
  if (!(await succeeds("node", ["tools/reference/main.ts", generated["docs/reference"]])))
    return false;
  const differences = Object.entries(generated).flatMap(([committed, fresh]) =>
    compareFolders(committed, fresh).map((file) => `${committed}/${file}`),
  );
  for (const file of differences) print(`${file} differs`);
  return differences.length === 0;
}

function command(program: string, ...args: string[]): Check {
  const name = [program, ...args].join(" ");
  return { name, run: () => succeeds(program, args) };
}

async function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  return (await run(program, args)) === 0;
}

function add(counts: Counts, more: Counts): void {
  counts.passed += more.passed;
  counts.failed += more.failed;
  counts.skipped += more.skipped;
}

function seconds(start: number): string {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await main(process.argv.slice(2));
