/** The command line of `npm run bench`. */
import { parseArgs } from "node:util";
import { type Scenario, scenarios } from "./scenario.ts";

/** What to measure. */
export interface BenchOptions {
  /** Seconds of each single measurement. Default 2. */
  readonly seconds: number;
  /** How often the contestants take turns. Default 3: medians need an odd number. */
  readonly rounds: number;
  readonly scenarios: readonly Scenario[];
  /** Whether to measure start and memory. */
  readonly isStartMeasured: boolean;
  /** Whether to measure translation between styles. */
  readonly isCrossMeasured: boolean;
  /** Whether to measure the ledger alone. */
  readonly isLedgerMeasured: boolean;
  /** Whether to measure webhooks past receivers that hang. */
  readonly areWebhooksMeasured: boolean;
  /** Whether to measure tasks. */
  readonly areTasksMeasured: boolean;
  /** Whether to measure questions to a call log of millions of rows. */
  readonly isLogMeasured: boolean;
  /** How many rows it has. Default 5,000,000: minutes to fill. */
  readonly logRows: number;
}

/** Says how to call the bench. */
export const usage = `usage: npm run bench -- [--seconds 2] [--rounds 3] [--rows 5000000] [--only json,flood,native,paced,large,cross,start,ledger,webhooks,tasks,log]
`;

/** @throws Error with a message for the user. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "2" },
      rounds: { type: "string", default: "3" },
      only: { type: "string", default: "" },
      rows: { type: "string", default: "5000000" },
    },
  });
  const only = new Set(values.only.split(",").filter(Boolean));
  const isWanted = (name: string): boolean => only.size === 0 || only.has(name);
  const known = new Set<string>([
    ...scenarios.map(({ name }) => name),
    "cross",
    "start",
    "ledger",
    "webhooks",
    "tasks",
    "log",
  ]);
  for (const name of only) if (!known.has(name)) throw new Error(`nothing is called "${name}"`);
  return {
    seconds: positive(values.seconds, "seconds"),
    rounds: Math.ceil(positive(values.rounds, "rounds")),
    scenarios: scenarios.filter(({ name }) => isWanted(name)),
    isStartMeasured: isWanted("start"),
    isCrossMeasured: isWanted("cross"),
    isLedgerMeasured: isWanted("ledger"),
    areWebhooksMeasured: isWanted("webhooks"),
    areTasksMeasured: isWanted("tasks"),
    // Filling it takes minutes: only where it is asked for.
    isLogMeasured: only.has("log"),
    logRows: rowCount(values.rows),
  };
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
