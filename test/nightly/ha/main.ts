/**
 * `npm run ha`: two gateways on a PostgreSQL with a synchronous standby, through HAProxy in TCP
 * mode. Under load, the primary is killed with -9, and in other scenarios frozen, or a gateway is
 * killed with it; the standby is promoted. No acknowledged charge or top-up may be lost or doubled,
 * and service resumes within 10 s of the promotion. As root, the servers run as an ordinary user.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "../../support/arguments.ts";
import { findHaproxy, haproxyMissing } from "./haproxy.ts";
import type { PostgresPrograms } from "../../support/replicated.ts";
import { type Failure, type FailoverResult, isRight, runFailover } from "./failover.ts";

const debianFolder = "/usr/lib/postgresql";

const postgresMissing = `There is no PostgreSQL server of version 15 or later in ${debianFolder}: install Debian's package postgresql, name the folder of initdb and postgres with --programs, or use --embedded.`;

const usage = `usage: npm run ha -- [options]

  --failure killed|frozen   how the primary fails (default: both, one after the other)
  --rounds N                rounds of each (default 1)
  --load SECONDS            how long customers work before the failure, and after service has resumed (default 10)
  --outage SECONDS          how long there is no primary (default 5)
  --programs DIR            the folder of initdb and postgres (default: the newest of Debian's package)
  --embedded                those of the npm package
  --help
`;

function readOptions() {
  const values = readArguments(usage, {
    failure: { type: "string" },
    rounds: { type: "string", default: "1" },
    load: { type: "string", default: "10" },
    outage: { type: "string", default: "5" },
    programs: { type: "string" },
    embedded: { type: "boolean", default: false },
  });
  const all: readonly Failure[] = ["killed", "frozen"];
  const failures = all.filter((one) => values.failure === undefined || values.failure === one);
  if (failures.length === 0) throw new Error("--failure is killed or frozen");
  const programs = values.embedded ? undefined : findPrograms(values.programs ?? newestOfDebian());
  if (findHaproxy() === undefined) throw new Error(haproxyMissing);
  if (!values.embedded && programs === undefined) throw new Error(postgresMissing);
  return {
    failures,
    rounds: positive("--rounds", values.rounds),
    loadMs: 1_000 * positive("--load", values.load),
    outageMs: 1_000 * positive("--outage", values.outage),
    programs,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`${name} must be a number above 0`);
}

function newestOfDebian(): string {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder).map(Number) : [];
  const newest = Math.max(...versions.filter((version) => version >= 15));
  return join(debianFolder, String(newest), "bin");
}

function findPrograms(folder: string): PostgresPrograms | undefined {
  const programs = { initdb: join(folder, "initdb"), postgres: join(folder, "postgres") };
  return existsSync(programs.initdb) && existsSync(programs.postgres) ? programs : undefined;
}

async function main(): Promise<void> {
  const { failures, rounds, programs, ...options } = readOptions();
  for (const failure of failures) {
    for (const killsGateway of [false, true]) {
      for (let round = 0; round < rounds; round++) {
        const parts = { failure, killsGateway, ...(programs && { programs }) };
        const result = await runFailover({ ...options, ...parts });
        tell(`primary ${failure}${killsGateway ? ", a gateway too" : ""}`, result);
        if (!isRight(result)) process.exitCode = 1;
      }
    }
  }
}

function tell(what: string, result: FailoverResult): void {
  const { acknowledged, refused, resumeMs, findings, others, auditFailure } = result;
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  const { lost, doubled, drift, stuck, details } = findings;
  const waits = Object.entries(result.refusalMsMax)
    .map(([kind, ms]) => `${kind} ${seconds(ms)}`)
    .join(", ");
  const lines = [
    `${what}: ${acknowledged} acknowledged`,
    `  ${refused} refused with 503, at the latest after: ${waits || "none"}`,
    `  service resumed ${seconds(resumeMs)} after the promotion`,
    `  lost ${lost}, doubled ${doubled}, drift ${drift}, stuck ${stuck}; journal files during the outage: ${result.journalFiles}`,
    `  other answers: ${listOf(others)}; failed tasks: ${listOf(result.failedTasks)}; of the dead gateway: ${listOf(result.deadTasks)}`,
    `  uas ledger audit: ${auditFailure ?? "passed"}`,
    ...(result.deadHoldsMs === undefined
      ? []
      : [`  holds of the dead gateway ended after ${seconds(result.deadHoldsMs)}`]),
    ...details.map((detail) => `  ${detail}`),
    isRight(result) ? "  right" : "  WRONG",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

function listOf(counts: Readonly<Record<string, number>>): string {
  return (
    Object.entries(counts)
      .map(([name, count]) => `${name}: ${count}`)
      .join(", ") || "none"
  );
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
