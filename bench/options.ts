/** The command line of `npm run bench`. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Scenario, scenarios } from "./scenario.ts";

/** Measurements beside the scenarios, in the order in which they run. */
export const partNames = ["open", "limits"] as const;

/** The name of a measurement beside the scenarios. */
export type PartName = (typeof partNames)[number];

/** Amount of measuring. */
interface Form {
  /** Seconds of each single measurement. */
  readonly seconds: number;
  /** Number of turns of each contestant: medians need an odd number. */
  readonly rounds: number;
  /** JSON requests to each contestant before anything is measured. */
  readonly warmUpRequests: number;
  /** Load before a contestant's first measurement in a scenario. */
  readonly firstWarmUpSeconds: number;
  /** Load before every later measurement. */
  readonly warmUpSeconds: number;
  /** Pairs of calls whose times are compared, for rate limits. */
  readonly pairs: number;
  /** Whether a busy gateway may refuse requests: no figure counts then. */
  readonly mayRefuse: boolean;
}

/** Scenarios and durations. */
export interface BenchOptions extends Form {
  readonly scenarios: readonly Scenario[];
  readonly parts: ReadonlySet<PartName>;
  /** The folder of another checkout whose gateway takes part as "other"; `undefined`: none. */
  readonly otherFolder: string | undefined;
}

const normal: Form = {
  seconds: 3,
  rounds: 5,
  warmUpRequests: 20_000,
  firstWarmUpSeconds: 3,
  warmUpSeconds: 1,
  pairs: 2_000,
  mayRefuse: false,
};

/** Many short turns: their ratios differ less than those of few long ones beside other work. */
const quick: Form = {
  ...normal,
  seconds: 1,
  rounds: 7,
  firstWarmUpSeconds: 1,
  pairs: 500,
};

/** Shows that everything runs. */
const short: Form = {
  seconds: 1,
  rounds: 1,
  warmUpRequests: 200,
  firstWarmUpSeconds: 0,
  warmUpSeconds: 0,
  pairs: 20,
  mayRefuse: true,
};

/** Help text. */
export const usage = `usage: npm run bench -- [options]

  --only NAMES     some of: ${[...scenarios.map(({ name }) => name), ...partNames].join(", ")}
  --seconds N      length of each measurement (${normal.seconds}; with --quick ${quick.seconds})
  --rounds N       how often the contestants take turns (${normal.rounds}; with --quick ${quick.rounds}); odd numbers give
                   true medians
  --gateway DIR    also runs the gateway of the checkout in DIR, as "other", in the same rounds
  --quick          many short turns with short warm-ups, for work in progress: compare within one run only
  --short          one turn of a second each: shows that everything runs, its figures mean nothing
  --help

One scenario, before and after a change, in two minutes:
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
      quick: { type: "boolean", default: false },
      short: { type: "boolean", default: false },
      gateway: { type: "string" },
    },
  });
  const form = values.short ? short : values.quick ? quick : normal;
  const only = new Set(values.only.split(",").filter(Boolean));
  const known = new Set<string>([...scenarios.map(({ name }) => name), ...partNames]);
  for (const name of only) if (!known.has(name)) throw new Error(`nothing is called "${name}"`);
  const isWanted = (name: string): boolean => only.size === 0 || only.has(name);
  return {
    ...form,
    seconds: wholeNumber(values.seconds ?? String(form.seconds), "seconds"),
    rounds: wholeNumber(values.rounds ?? String(form.rounds), "rounds"),
    scenarios: scenarios.filter(({ name }) => isWanted(name)),
    parts: new Set(partNames.filter(isWanted)),
    otherFolder: values.gateway === undefined ? undefined : checkout(resolve(cwd, values.gateway)),
  };
}

function checkout(folder: string): string {
  if (existsSync(join(folder, "bin/uas.js"))) return folder;
  throw new Error(`--gateway must be the folder of a checkout; ${folder} has no bin/uas.js`);
}

function wholeNumber(text: string, name: string): number {
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new Error(`--${name} must be a whole number from 1 to 999`);
}
