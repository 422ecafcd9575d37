/**
 * `npm run fuzz`: sends mutated requests to every entry point of a gateway, and fails if one gets a
 * 5xx, hangs, leaks or breaks the ledger. With `--faults` it sends good requests instead, and hurts
 * the replies of vendors of every kind. With `--quirks` it passes replies of sloppy vendors through
 * the dialects, and compares what callers read and pay.
 */
import { randomInt } from "node:crypto";
import { readArguments } from "../../support/arguments.ts";
import { proxiedVendors } from "./fault-flows.ts";
import { faultMembers, runFaults } from "./faults.ts";
import { withServer } from "./server.ts";
import { checkQuirks } from "../../behaviour/sloppy-vendors/run.ts";
import { openVendorProxies } from "./vendor-proxy.ts";
import { fuzz, type FuzzReport } from "./run.ts";
import { startWorld } from "./world.ts";

const usage = `usage: npm run fuzz -- [options]

  --requests N   how many requests are sent (default 1000000; with --faults 10000, with --quirks 20000)
  --seconds N    ends earlier, after so many seconds
  --seed N       the same requests again; the seed is printed first (default: any)
  --only TEXT    only entry points, or quirks, whose name contains the text
  --faults       sends good requests to vendors of every kind, and delays, cuts, doubles, corrupts, drips or compresses
                 their replies, or refuses or breaks the connection
  --quirks       compares conversations of vendors with one or two quirks with the same conversations without them
  --help

It runs on the server of DATABASE_URL, else on an embedded one of its own; with --quirks it needs none.
`;

const values = readArguments(usage, {
  requests: { type: "string" },
  faults: { type: "boolean", default: false },
  quirks: { type: "boolean", default: false },
  seed: { type: "string", default: String(randomInt(2 ** 31 - 1)) },
  only: { type: "string", default: "" },
  seconds: { type: "string" },
});

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`--${name} must be a whole number from 1`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printReport({ counts, findings, memory, rssMost }: FuzzReport): void {
  print("entry point      sent       ok  refused     busy   silent  mean ms");
  for (const [name, { sent, ok, refused, busy, silent, ms }] of Object.entries(counts)) {
    const numbers = [sent, ok, refused, busy, silent, Math.round(ms / Math.max(1, sent))].map(
      (each) => String(each).padStart(8),
    );
    print(`${name.padEnd(13)}${numbers.join(" ")}`);
  }
  for (const [when, { resident, heap, external }] of [
    ["after a tenth", memory.warm],
    ["at the end", memory.end],
  ] as const) {
    print(`memory ${when}: ${resident} MB resident, ${heap} MB heap, ${external} MB outside it`);
  }
  print(`at most ${rssMost} MB resident`);
  for (const finding of findings) print(`\nFINDING ${finding}`);
}

const startMs = performance.now();

function printProgress(done: number): void {
  print(`${done} after ${Math.round((performance.now() - startMs) / 1_000)} s`);
}

function conclude(seed: number, findings: readonly string[]): void {
  const minutes = ((performance.now() - startMs) / 60_000).toFixed(1);
  print(`\nseed ${seed}, ${minutes} min: ${findings.length === 0 ? "nothing is wrong" : "WRONG"}`);
  if (findings.length > 0) process.exitCode = 1;
}

async function hurtVendors(databaseUrl: string, seed: number): Promise<void> {
  const calls = wholeNumber("requests", values.requests ?? "10000");
  print(`seed ${seed}: ${calls} calls with faults`);
  const proxies = await openVendorProxies(proxiedVendors);
  const world = await startWorld(databaseUrl, {
    addressOf: proxies.addressOf,
    vendorMembers: faultMembers,
  });
  try {
    const report = await runFaults(world, proxies, {
      ...{ calls, seed, lanes: 64, only: values.only },
      onProgress: printProgress,
    });
    for (const [name, count] of Object.entries(report.classes)) print(`${name}: ${count} calls`);
    print(`sent again after a refusal: ${report.repeated} calls`);
    for (const finding of report.findings.slice(0, 30)) print(`FINDING ${finding}`);
    conclude(seed, report.findings);
  } finally {
    await world.close();
    await proxies.close();
  }
}

const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number =>
  one.localeCompare(other);

function showQuirks(seed: number): void {
  const conversations = wholeNumber("requests", values.requests ?? "20000");
  print(`seed ${seed}: ${conversations} conversations of vendors with quirks`);
  const { findings, shown } = checkQuirks({
    ...{ conversations, seed, only: values.only },
    onProgress: printProgress,
  });
  for (const [name, { alone, paired }] of [...shown].toSorted(byName)) {
    print(`${String(alone).padStart(7)} alone ${String(paired).padStart(7)} paired  ${name}`);
  }
  for (const finding of findings.slice(0, 30)) print(`\nFINDING ${finding}`);
  conclude(seed, findings);
}

async function run(databaseUrl: string, seed: number): Promise<void> {
  if (values.faults) return hurtVendors(databaseUrl, seed);
  const requests = wholeNumber("requests", values.requests ?? "1000000");
  print(`seed ${seed}: ${requests} requests`);
  const world = await startWorld(databaseUrl);
  try {
    const report = await fuzz(world, {
      ...{ requests, seed, only: values.only, lanes: 48 },
      ...(values.seconds !== undefined && { seconds: wholeNumber("seconds", values.seconds) }),
      onProgress: (done) => {
        if (done % 20_000 === 0) printProgress(done);
      },
    });
    printReport(report);
    conclude(seed, report.findings);
  } finally {
    await world.close();
  }
}

const seed = wholeNumber("seed", values.seed);
if (values.quirks) showQuirks(seed);
else await withServer((databaseUrl) => run(databaseUrl, seed));
