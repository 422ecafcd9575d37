/**
 * `npm run chaos`: kills gateways, their database's processes and their database at every point
 * where money moves, fills disks, and compares the answers of clients with the ledger. Then it
 * kills workers of tasks and senders of webhooks at each of their points, and workers of a gateway.
 * It also kills one of two containers that share a data folder, and the primary of a replicated
 * database. Ledgers run under full load until a million charges were acknowledged, and gateways
 * until ten thousand tasks were accepted. A fault that never occurred is a failure.
 *
 * Everything runs on separate PostgreSQL servers, in a temporary folder.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRight, runFailover } from "../ha/failover.ts";
import { findHaproxy, haproxyMissing } from "../ha/haproxy.ts";
import { hasContainers, runContainers } from "./containers.ts";
import { readArguments } from "../../support/arguments.ts";
import { whenInterrupted } from "../../support/interrupted.ts";
import { createRandom } from "./plan.ts";
import { planRounds } from "./planned.ts";
import { type Mode, type Ran, runRounds } from "./runs.ts";
import { type FragileServer, startFragile } from "./server.ts";
import { isGood, problemsOf, sumUp, tableOf } from "./table.ts";
import { runTestRounds, taskTests, workerTests } from "./tasks.ts";
import { runWorkers } from "./workers.ts";

interface Options {
  readonly rounds: number;
  readonly charges: number;
  readonly submits: number;
  readonly seed: number;
  readonly only: string;
  readonly modes: readonly Mode[];
  /** The modes other than rounds. */
  readonly others: readonly OtherMode[];
  readonly lanes: number;
  readonly isFast: boolean;
  /** Whether a fault that this machine cannot make is no failure. */
  readonly mayMiss: boolean;
}

const usage = `usage: npm run chaos -- [options]

  --mode MODE    ledger, gateway, load, submits, tasks, workers, containers or failover (default: all)
  --rounds N     rounds of each fault (default 10; of the points of mode gateway a fifth)
  --only TEXT    only faults whose name contains the text
  --fast         a tenth of the timings of production throughout. Else the first round of each fault, and modes load
                 and submits, have those of production
  --allow-missing
                 a fault that this machine cannot make is no failure
  --lanes N      rounds at a time (default 8)
  --charges N    how many charges mode load acknowledges (default 1000000)
  --submits N    how many tasks mode submits accepts (default 10000)
  --seed N       the same plan again; the seed is printed first (default: any)
  --help
`;

function readOptions(): Options {
  const values = readArguments(usage, {
    rounds: { type: "string", default: "10" },
    charges: { type: "string", default: "1000000" },
    submits: { type: "string", default: "10000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    only: { type: "string", default: "" },
    mode: { type: "string" },
    fast: { type: "boolean", default: false },
    "allow-missing": { type: "boolean", default: false },
    lanes: { type: "string", default: "8" },
  });
  const { mode, only } = values;
  const known: readonly string[] = [...allModes, ...otherModes];
  if (mode !== undefined && !known.includes(mode)) {
    throw new Error(`--mode is one of ${known.join(", ")}`);
  }
  return {
    rounds: wholeNumber("--rounds", values.rounds),
    charges: wholeNumber("--charges", values.charges),
    submits: wholeNumber("--submits", values.submits),
    seed: wholeNumber("--seed", values.seed),
    lanes: wholeNumber("--lanes", values.lanes),
    only,
    isFast: values.fast,
    mayMiss: values["allow-missing"],
    modes: allModes.filter((one) => mode === undefined || mode === one),
    others: otherModes.filter((one) => one === mode || (mode === undefined && only === "")),
  };
}

const allModes: readonly Mode[] = ["ledger", "gateway"];

const otherModes = ["load", "submits", "tasks", "workers", "containers", "failover"] as const;

/** Modes without rounds of one fault each. */
type OtherMode = (typeof otherModes)[number];

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`${name} must be a whole number from 1`);
}

async function main(): Promise<void> {
  const options = readOptions();
  if (options.modes.length > 0) await killMoney(options);
  const { rounds } = options;
  const run = {
    load: () => killUntil(options.charges, "acknowledged charges", fullLoad, options),
    submits: () => killUntil(options.submits, "accepted tasks", submitting, options),
    tasks: async () => {
      await repeat("tasks and webhooks", taskTests, rounds);
      // The tests end holds by themselves. Here gateways with tasks die, and others end their
      // holds.
      await killUntil(tasksOfMode, "accepted tasks", submitting, options);
    },
    workers: async () => {
      await repeat("workers", workerTests, rounds);
      await killWorkers(rounds);
    },
    containers: () => killContainers(options),
    failover: () => failOver(options),
  };
  for (const other of options.others) await run[other]();
}

/** Minimum number of accepted tasks in mode tasks: one round. */
const tasksOfMode = 1;

async function killWorkers(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const { deadHoldsMs, findings } = await runWorkers();
    const isSound = findings.stuck + findings.drift === 0;
    print(
      `worker killed: its holds ended after ${inSeconds(deadHoldsMs)}: ${isSound ? "nothing is lost" : "WRONG"}`,
    );
    for (const detail of findings.details) print(detail);
    if (!isSound) process.exitCode = 1;
  }
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

async function repeat(name: string, files: readonly string[], rounds: number): Promise<void> {
  const failed = await runTestRounds(files, rounds);
  print(`${name}, ${rounds} rounds: ${failed === 0 ? "nothing is lost" : "WRONG"}`);
  if (failed > 0) process.exitCode = 1;
}

/** Time of customers' work before and after, and time without a primary. */
const failoverTimes = { loadMs: 3_000, outageMs: 4_000 };

async function failOver(options: Options): Promise<void> {
  if (findHaproxy() === undefined) return miss(`failover: not run. ${haproxyMissing}`, options);
  const { rounds } = options;
  for (const failure of ["killed", "frozen"] as const) {
    for (let round = 0; round < rounds; round++) {
      // In every second round a gateway dies with the primary.
      const result = await runFailover({
        failure,
        killsGateway: round % 2 === 0,
        ...failoverTimes,
      });
      const { acknowledged, refused, resumeMs } = result;
      const seconds = (resumeMs / 1_000).toFixed(1);
      const verdict = isRight(result) ? "nothing is lost" : `WRONG ${JSON.stringify(result)}`;
      print(
        `primary ${failure}: ${acknowledged} acknowledged, ${refused} refused, resumed after ${seconds} s: ${verdict}`,
      );
      if (!isRight(result)) process.exitCode = 1;
    }
  }
}

/** Top-ups of a round before and after the kill. */
const bookings = 20;

/**
 * Reports a part that this machine cannot run. It proves nothing, so it is a failure unless it was
 * allowed.
 */
function miss(line: string, { mayMiss }: Options): void {
  print(line);
  if (mayMiss) return;
  print("a fault that never came is a failure; to allow it: --allow-missing");
  process.exitCode = 1;
}

async function killContainers(options: Options): Promise<void> {
  const { rounds } = options;
  if (!hasContainers()) {
    const reason = "this machine does not let us make any: run it as root, on Linux";
    miss(`containers: not run, ${reason}`, options);
    return;
  }
  for (let round = 0; round < rounds; round++) {
    const { acknowledged, takeoverMs, deadHoldsMs, problems } = await runContainers(bookings);
    const isSound = problems.length === 0;
    print(
      `containers: ${acknowledged} top-ups, taken over after ${inSeconds(takeoverMs)}, hold ended after ${inSeconds(deadHoldsMs)}: ${isSound ? "nothing is lost" : "WRONG"}`,
    );
    for (const problem of problems) print(problem);
    if (!isSound) process.exitCode = 1;
  }
}

async function killMoney(options: Options): Promise<void> {
  const startMs = performance.now();
  const { rounds, missing } = planRounds(options);
  for (const line of missing) miss(line, options);
  print(`seed ${options.seed}: ${rounds.length} rounds`);
  if (rounds.length === 0) return;
  await inFolder(async (folder, interrupted) => {
    // A server lets in 100 connections: two lanes need most of them.
    const steady = await startServers(join(folder, "steady"), Math.ceil(options.lanes / 2));
    const fragile = await startServers(join(folder, "fragile"), 2);
    try {
      const { lanes } = options;
      const servers = { steady, fragile };
      const runs = runRounds({
        rounds,
        servers,
        folder,
        lanes,
        onRound: createTell(rounds.length),
      });
      const ran = await Promise.race([runs, interrupted]);
      print(`\n${tableOf(ran)}\n`);
      const minutes = ((performance.now() - startMs) / 60_000).toFixed(1);
      const sums = sumUp(ran);
      const areBooksRight = isGood(sums);
      for (const fault of sums.missed) print(`${fault}: never came, nothing is proven of it`);
      print(
        `seed ${options.seed}, ${minutes} min: ${areBooksRight ? "the books are right" : "WRONG"}`,
      );
      if (!areBooksRight) process.exitCode = 1;
    } finally {
      for (const server of [...fragile, ...steady]) await server.close();
    }
  });
}

/** Ledgers with as many calls as a busy gateway, each killed a few times. */
const fullLoad = {
  mode: "ledger",
  fault: { name: "kill -9 under full load", kind: "random" },
  pace: { callers: 256, lives: 5, lifeMs: [2_000, 12_000] },
} as const;

/** Gateways whose clients submit tasks, and repeat a submit whose answer died with its process. */
const submitting = {
  mode: "submits",
  fault: { name: "kill -9 of gateways that run tasks", kind: "random" },
  pace: { callers: 48, lives: 8, lifeMs: [500, 2_000] },
} as const;

/** Kills processes round by round, until clients had so many answers. */
async function killUntil(
  count: number,
  what: string,
  load: typeof fullLoad | typeof submitting,
  { seed, isFast }: Options,
): Promise<void> {
  const random = createRandom(seed);
  await inFolder(async (folder, interrupted) => {
    const steady = await startServers(join(folder, "steady"), 1);
    const servers = { steady, fragile: [] };
    const ran: Ran[] = [];
    try {
      do {
        const rounds = [{ ...load, isFull: !isFast, seed: Math.floor(random() * 2 ** 31) }];
        const runs = runRounds({ rounds, servers, folder, lanes: 1 });
        ran.push(...(await Promise.race([runs, interrupted])));
      } while (isGood(sumUp(ran)) && sumUp(ran).settled < count);
    } finally {
      for (const server of steady) await server.close();
    }
    const sums = sumUp(ran);
    print(`\n${tableOf(ran)}\n`);
    for (const problem of problemsOf(ran)) print(problem);
    const kills = ran.length * load.pace.lives;
    const verdict = isGood(sums) ? "nothing is lost or doubled" : "WRONG";
    print(`seed ${seed}: ${sums.settled} ${what}, ${kills} kills: ${verdict}`);
    if (!isGood(sums)) process.exitCode = 1;
  });
}

/** Runs `work` with a temporary folder, and with the promise of {@link whenInterrupted}. */
async function inFolder(
  work: (folder: string, interrupted: Promise<never>) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "uas-chaos-"));
  try {
    await work(folder, whenInterrupted());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function startServers(folder: string, count: number): Promise<FragileServer[]> {
  const servers = Array.from({ length: count }, (_, index) => startFragile(`${folder}-${index}`));
  return Promise.all(servers);
}

/** Reports failures at once, and progress now and then. */
function createTell(count: number): (ran: Ran) => void {
  const startMs = performance.now();
  let done = 0;
  return (ran) => {
    for (const problem of problemsOf([ran])) print(problem);
    if (++done % 25 !== 0) return;
    print(`${done} of ${count} after ${Math.round((performance.now() - startMs) / 1_000)} s`);
  };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
process.exit();
