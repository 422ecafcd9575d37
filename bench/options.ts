/** The command line of `npm run bench`. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { RoutingScale } from "./routing.ts";
import { type Scenario, scenarios } from "./scenario.ts";

/** How long a contestant is loaded before anything is measured: a number of JSON requests, or seconds. */
export type WarmUp = { readonly requests: number } | { readonly seconds: number };

/** Times around each measurement, in milliseconds. */
export interface Pauses {
  /** Load before a contestant's first measurement in a scenario: its code paths are compiled on the contestant's one
   * core. With 1 s the gateway's figure came out by a third too high. */
  readonly firstWarmUpMs: number;
  /** Load before every later measurement. */
  readonly warmUpMs: number;
  /** Rest after a measurement, in which a contestant finishes its work. */
  readonly restMs: number;
}

/** How many tasks are measured. */
export interface TaskFlight {
  /** How many end one after the other, each timed. */
  readonly ends: number;
  /** How many a vendor has at once. */
  readonly tasks: number;
  /** How long the gateway is watched meanwhile. */
  readonly watchMs: number;
}

/** Measurements beside the scenarios, in the order in which they run. */
export const partNames = [
  "ledger",
  "routing",
  "webhooks",
  "log",
  "tasks",
  "body",
  "open",
  "cross",
  "workers",
  "start",
] as const;

/** The name of a measurement beside the scenarios. */
export type PartName = (typeof partNames)[number];

/** What to measure, and how long. */
export interface BenchOptions {
  /** Seconds of each single measurement. Default 2. */
  readonly seconds: number;
  /** Whether scenarios that name a length of their own are measured for as long. */
  readonly isWhole: boolean;
  /** Whether a busy gateway may tell requests to try again: no figure counts then. Default: that fails the bench. */
  readonly mayRefuse: boolean;
  /** How often the contestants take turns. Default 3: medians need an odd number. */
  readonly rounds: number;
  readonly warmUp: WarmUp;
  readonly pauses: Pauses;
  readonly flight: TaskFlight;
  readonly routing: RoutingScale;
  /** How many chunks of a flood the vendor writes at once. `undefined`: as each scenario has it. */
  readonly groupChunks: number | undefined;
  readonly scenarios: readonly Scenario[];
  readonly parts: ReadonlySet<PartName>;
  /** The folder of another checkout whose gateway takes part as "other"; `undefined`: none. */
  readonly otherFolder: string | undefined;
  /** Rows of the call log. Default 5,000,000: minutes to fill. */
  readonly logRows: number;
}

/** What a form of the bench takes where nothing else is asked for. */
interface Form
  extends Pick<BenchOptions, "seconds" | "mayRefuse" | "rounds" | "pauses" | "flight" | "routing"> {
  readonly warmUp: string;
}

const normal: Form = {
  seconds: 2,
  mayRefuse: false,
  rounds: 3,
  warmUp: "20000",
  pauses: { firstWarmUpMs: 3_000, warmUpMs: 1_000, restMs: 300 },
  flight: { ends: 40, tasks: 10_000, watchMs: 20_000 },
  routing: {
    requests: 1_022,
    tokens: 30_000,
    calls: 10_000,
    conversations: 1_000,
    pairs: 2_000,
    watchMs: 15_000,
    isStrict: true,
  },
};

/** Many short turns: their ratios differ less than those of few long ones beside other work. */
const quick: Form = {
  ...normal,
  seconds: 0.8,
  rounds: 7,
  pauses: { firstWarmUpMs: 1_000, warmUpMs: 300, restMs: 100 },
};

/** Shows that everything runs. */
const short: Form = {
  seconds: 0.2,
  mayRefuse: true,
  rounds: 1,
  warmUp: "200",
  pauses: { firstWarmUpMs: 20, warmUpMs: 20, restMs: 0 },
  flight: { ends: 3, tasks: 400, watchMs: 500 },
  routing: {
    requests: 150,
    tokens: 1_500,
    calls: 200,
    conversations: 20,
    pairs: 20,
    watchMs: 500,
    isStrict: false,
  },
};

/** Help text. */
export const usage = `usage: npm run bench -- [options]

  --only NAMES     some of: ${scenarios.map(({ name }) => name).join(", ")},
                   ${partNames.join(", ")}
                   (default: everything but log)
  --seconds N      length of each measurement (${normal.seconds}, of paced streams as long as they last;
                   with --quick ${quick.seconds})
  --rounds N       how often the contestants take turns (${normal.rounds}; with --quick ${quick.rounds}); odd numbers give
                   true medians
  --warm-up N      JSON requests to each contestant before anything is measured (${normal.warmUp}), or seconds:
                   --warm-up 10s
  --gateway DIR    also runs the gateway of the checkout in DIR, as "other", in the same rounds
  --quick          many short turns with short warm-ups, for work in progress: compare within one run only
  --short          a few hundred requests each: shows that everything runs, its figures mean nothing
  --group N        chunks of a flood that the vendor writes at once: 1, 2, 5, 10, 20 or 50 (1 where
                   streams have 200 chunks, else 50); the fewer, the more of
                   the cost is system calls, which the bare proxy has too
  --rows N         rows of the call log (5000000)
  --help

One scenario, before and after a change, in under a minute:
  npm run bench -- --quick --only json --gateway ../before
`;

/** @throws Error with a message for the user. */
export function readOptions(args: readonly string[], cwd: string): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string" },
      rounds: { type: "string" },
      only: { type: "string", default: "" },
      rows: { type: "string", default: "5000000" },
      quick: { type: "boolean", default: false },
      short: { type: "boolean", default: false },
      group: { type: "string" },
      gateway: { type: "string" },
      "warm-up": { type: "string" },
    },
  });
  const form = values.short ? short : values.quick ? quick : normal;
  const only = new Set(values.only.split(",").filter(Boolean));
  const known = new Set<string>([...scenarios.map(({ name }) => name), ...partNames]);
  for (const name of only) if (!known.has(name)) throw new Error(`nothing is called "${name}"`);
  // Filling the call log takes minutes: only where it is asked for.
  const isWanted = (name: string): boolean => (only.size === 0 ? name !== "log" : only.has(name));
  return {
    seconds: positive(values.seconds ?? String(form.seconds), "seconds"),
    isWhole: form === normal && values.seconds === undefined,
    rounds: Math.ceil(positive(values.rounds ?? String(form.rounds), "rounds")),
    warmUp: readWarmUp(values["warm-up"] ?? form.warmUp),
    mayRefuse: form.mayRefuse,
    pauses: form.pauses,
    flight: form.flight,
    routing: form.routing,
    groupChunks: values.group === undefined ? undefined : groupSize(values.group),
    scenarios: scenarios.filter(({ name }) => isWanted(name)),
    parts: new Set(partNames.filter(isWanted)),
    otherFolder: values.gateway === undefined ? undefined : checkout(resolve(cwd, values.gateway)),
    logRows: rowCount(values.rows),
  };
}

function checkout(folder: string): string {
  if (existsSync(join(folder, "bin/uas.js"))) return folder;
  throw new Error(`--gateway must be the folder of a checkout; ${folder} has no bin/uas.js`);
}

function readWarmUp(text: string): WarmUp {
  const seconds = /^(.+)s$/.exec(text)?.[1];
  if (seconds !== undefined) return { seconds: positive(seconds, "warm-up") };
  if (/^\d{1,7}$/.test(text)) return { requests: Number(text) };
  throw new Error("--warm-up must be a number of requests, or of seconds: 10s");
}

/** Only what divides all lengths of streams. */
function groupSize(text: string): number {
  if (["1", "2", "5", "10", "20", "50"].includes(text)) return Number(text);
  throw new Error("--group must be 1, 2, 5, 10, 20 or 50");
}

function rowCount(text: string): number {
  if (/^[1-9]\d{3,7}$/.test(text)) return Number(text);
  throw new Error("--rows must be a whole number from 1000 to 99999999");
}

function positive(text: string, name: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 600)) throw new Error(`--${name} must be a number from 0 to 600`);
  return value;
}
