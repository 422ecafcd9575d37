/** The rounds of a run, and the faults that cannot be made on this machine. */
import { type Fault, faults, isOfLedgerOnly, obstacleOf } from "./fault.ts";
import { createRandom } from "./plan.ts";
import type { Mode, Planned } from "./runs.ts";

/** Options of a plan. */
interface PlanOptions {
  readonly modes: readonly Mode[];
  /** Rounds of each fault. */
  readonly rounds: number;
  readonly seed: number;
  /** Only faults whose name contains this. Empty for all. */
  readonly only: string;
  /** Whether no round has the timings of production. */
  readonly isFast: boolean;
  /** Why a fault cannot be made. Default: {@link obstacleOf} */
  readonly obstacleOf?: (fault: Fault) => string | undefined;
}

/** See {@link planRounds}. */
interface RoundPlan {
  readonly rounds: readonly Planned[];
  /** Requested faults that are impossible here, each with the reason and the remedy. */
  readonly missing: readonly string[];
}

/**
 * Plans all rounds of a run. In each mode the first round of each fault has the timings of
 * production, the others a tenth.
 *
 * @throws if no fault is requested, because nothing would be proven
 */
export function planRounds(options: PlanOptions): RoundPlan {
  const { modes, only, obstacleOf: obstacle = obstacleOf } = options;
  const asked = modes.flatMap((mode) =>
    faults
      .filter(({ name }) => name.includes(only))
      .filter((fault) => mode === "ledger" || !isOfLedgerOnly(fault))
      .map((fault) => ({ mode, fault })),
  );
  if (asked.length === 0) {
    const names = faults.map(({ name }) => name).join(", ");
    throw new Error(
      `no fault of mode ${modes.join(" or ")} has "${only}" in its name; they are: ${names}`,
    );
  }
  const random = createRandom(options.seed);
  const missing = asked.flatMap(({ mode, fault }) => {
    const reason = obstacle(fault);
    return reason === undefined ? [] : [`${mode}: ${fault.name}: not run, ${reason}`];
  });
  const rounds = asked
    .filter(({ fault }) => obstacle(fault) === undefined)
    .flatMap(({ mode, fault }) => roundsOf(mode, fault, options, random));
  return { rounds, missing };
}

function roundsOf(
  mode: Mode,
  fault: Fault,
  { rounds, isFast }: PlanOptions,
  random: () => number,
): Planned[] {
  // Whole gateways take seconds to start; at the points there are ledgers enough.
  const count = mode === "gateway" && fault.kind === "point" ? Math.ceil(rounds / 5) : rounds;
  return Array.from({ length: count }, (_, index) => ({
    mode,
    fault,
    // Even and odd in turns: with another process running, and without.
    seed: 2 * Math.floor(random() * 2 ** 30) + (index % 2),
    isFull: index === 0 && !isFast,
  }));
}
