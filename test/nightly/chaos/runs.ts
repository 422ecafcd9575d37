/** Many rounds, several at a time; those that hurt a database one after another there. */
import { type Fault, isFragile } from "./fault.ts";
import { type Pace, type RoundOptions, type RoundResult, runRound } from "./round.ts";
import type { ChaosServer, FragileServer } from "./server.ts";
import { openGatewayWork } from "./gateway-work.ts";
import { openSubmitWork } from "./submit-work.ts";
import { openLedgerWork } from "./work.ts";

/**
 * Kind of the processes: ledgers with their own callers, or gateways with clients that stream or
 * submit tasks.
 */
export type Mode = keyof typeof openWork;

const openWork = {
  ledger: openLedgerWork,
  gateway: openGatewayWork,
  submits: openSubmitWork,
} as const;

/** A round that is to be run. */
export interface Planned {
  readonly mode: Mode;
  readonly fault: Fault;
  readonly seed: number;
  readonly isFull: boolean;
  readonly pace?: Pace | undefined;
}

/** A round that was run; an error is one of the harness. */
export interface Ran extends Planned {
  readonly result: RoundResult | Error;
}

/** Servers for the rounds. */
export interface Servers {
  /** For the rounds that leave the database alone; shared out among the lanes. */
  readonly steady: readonly ChaosServer[];
  /** Each is hurt by one round at a time. */
  readonly fragile: readonly FragileServer[];
}

/** Options of {@link runRounds}. */
export interface RunsOptions {
  readonly rounds: readonly Planned[];
  readonly servers: Servers;
  readonly folder: string;
  /** Number of parallel rounds that leave the database alone. */
  readonly lanes: number;
  /** Called after each round. Default: no callback. */
  readonly onRound?: (ran: Ran) => void;
}

/** Runs them all; what goes wrong in one is its result. */
export async function runRounds(options: RunsOptions): Promise<Ran[]> {
  const { rounds, lanes } = options;
  // Rounds with the timings of production mostly wait, so they run first, in parallel to the
  // others.
  const steadyRounds = rounds.filter(({ fault }) => !isFragile(fault));
  const full = steadyRounds.filter((round) => round.isFull);
  const short = steadyRounds.filter((round) => !round.isFull);
  const fragile = rounds.filter(({ fault }) => isFragile(fault));
  const ran: Ran[] = [];
  const { steady, fragile: hurt } = options.servers;
  const work = async (queue: Planned[], server: ChaosServer | undefined): Promise<void> => {
    if (server === undefined) throw new RangeError("there is no server");
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const one = { ...next, result: await tryRound(next, server, options.folder) };
      ran.push(one);
      options.onRound?.(one);
    }
  };
  await Promise.all([
    ...Array.from({ length: lanes }, (_, lane) => work(short, steady[lane % steady.length])),
    ...Array.from({ length: lanes }, (_, lane) => work(full, steady[lane % steady.length])),
    ...hurt.map((server) => work(fragile, server)),
  ]);
  return ran;
}

async function tryRound(
  { mode, fault, seed, isFull, pace }: Planned,
  server: ChaosServer,
  folder: string,
): Promise<RoundResult | Error> {
  const round: RoundOptions = {
    fault,
    seed,
    isFull,
    pace,
    folder,
    server,
    openWork: openWork[mode],
  };
  try {
    return await runRound(round);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
