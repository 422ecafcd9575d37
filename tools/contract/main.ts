/**
 * Compares `proto/` with the released contract, `proto/baseline.binpb`.
 *
 * - `changelog`, for `npm run generate`: writes the unreleased changes into `proto/CHANGELOG.md`.
 * - `check`, for `npm run check`: fails if a released part breaks, or if the changelog is not up to
 *   date.
 * - `accept`, for `npm run contract:accept`: makes the contract the released one, under the version
 *   of `package.json`. It refuses breaking changes, unless `--breaking "reason"` accepts them; then
 *   it needs no new version.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { compareContracts } from "../../src/contract/compare.ts";
import { contractOf, readContract } from "../../src/contract/contract.ts";
import { describeChanges } from "../../src/contract/describe.ts";
import { acceptChanges, keptPart, releasesOf, writeChangelog } from "./changelog.ts";
import { compareVersions, findBreakage } from "./removal.ts";

const root = join(import.meta.dirname, "../..");
const buf = join(root, "node_modules/.bin/buf");
const baselineFile = join(root, "proto/baseline.binpb");
const changelogFile = join(root, "proto/CHANGELOG.md");

const current = execFileSync(buf, ["build", "-o", "-"], { cwd: root, maxBuffer: 2 ** 26 });
const newer = readContract(current);
const baseline = fromBinary(FileDescriptorSetSchema, readFileSync(baselineFile));
const changelog = readFileSync(changelogFile, "utf8");
const kept = keptPart(changelog);
const sections = describeChanges(compareContracts(contractOf(baseline), newer));
const today = new Date().toISOString().slice(0, 10);

/** Every reason why clients of the released contract can fail. */
function findProblems(): string[] {
  const { released, breaking } = findBreakage(baseline, newer, {
    releases: releasesOf(changelog),
    today,
  });
  const ours = describeChanges(breaking).flatMap(({ lines }) => lines);
  return [...ours, ...bufProblems(released)];
}

/**
 * Returns the findings of `buf breaking`, which also compares the files of generated code, but no
 * options.
 */
function bufProblems(released: FileDescriptorSet): string[] {
  const folder = mkdtempSync(join(tmpdir(), "uas-contract-"));
  try {
    const file = join(folder, "released.binpb");
    writeFileSync(file, toBinary(FileDescriptorSetSchema, released));
    const { stdout, stderr, status } = spawnSync(buf, ["breaking", "--against", file], {
      cwd: root,
      encoding: "utf8",
    });
    const lines = `${stdout}${stderr}`.trim().split("\n").filter(Boolean);
    return status === 0 ? [] : lines.map((line) => `buf: ${line}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function check(): void {
  const problems = findProblems();
  if (writeChangelog(sections, kept) !== changelog) {
    problems.push("proto/CHANGELOG.md is not up to date: run `npm run generate`");
  }
  fail(problems);
}

function accept(args: readonly string[]): void {
  const at = args.indexOf("--breaking");
  const reason = at === -1 ? undefined : args[at + 1];
  const problems = findProblems();
  if (problems.length > 0 && !reason) {
    return fail([
      ...problems,
      'Released parts do not break: add a new part beside the old one. To accept it all the same: npm run contract:accept -- --breaking "the reason"',
    ]);
  }
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  const [last = "0.0.0"] = releasesOf(changelog);
  const isRelease = compareVersions(version, last) > 0;
  if (!isRelease && !reason) {
    return fail([
      `${last} is released. Additions need no acceptance before the next release; for that, set its version in package.json first`,
    ]);
  }
  const accepted = { version: isRelease ? version : undefined, date: today, reason };
  writeFileSync(baselineFile, current);
  writeFileSync(changelogFile, writeChangelog([], acceptChanges(sections, kept, accepted)));
  const name = isRelease ? version : "the baseline";
  process.stdout.write(`proto/ is now the contract of ${name}: commit proto/ with it\n`);
}

function fail(problems: readonly string[]): void {
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
}

const [command, ...args] = process.argv.slice(2);
if (command === "changelog") writeFileSync(changelogFile, writeChangelog(sections, kept));
else if (command === "check") check();
else if (command === "accept") accept(args);
else throw new Error("usage: node tools/contract/main.ts changelog|check|accept");
