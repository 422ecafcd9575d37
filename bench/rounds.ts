/**
 * A scenario in rounds: the contestants take turns, so that other work on the machine affects all
 * of them.
 */
import {
  type Contestant,
  type ContestantName,
  type Loads,
  measure,
  type Measurement,
} from "./measure.ts";
import type { BenchOptions } from "./options.ts";
import type { Scenario } from "./scenario.ts";
import { median, type Ratio, ratioOf } from "./statistics.ts";

/** The measurements of each contestant, round by round. */
export class Rounds {
  readonly scenario: Scenario;
  readonly #results: ReadonlyMap<ContestantName, readonly Measurement[]>;

  constructor(scenario: Scenario, results: ReadonlyMap<ContestantName, readonly Measurement[]>) {
    this.scenario = scenario;
    this.#results = results;
  }

  /** In the order of their first turns. */
  names(): readonly ContestantName[] {
    return [...this.#results.keys()];
  }

  /** The median of a figure. */
  median(name: ContestantName, figure: keyof Measurement): number {
    return median(this.#figures(name, figure));
  }

  /** A figure of one contestant as a multiple of another's CPU. */
  ratio(name: ContestantName, figure: keyof Measurement, divisor: ContestantName): Ratio {
    return ratioOf(this.#figures(name, figure), this.#figures(divisor, "cpuMicros"));
  }

  #figures(name: ContestantName, figure: keyof Measurement): readonly number[] {
    return (this.#results.get(name) ?? []).map((measurement) => measurement[figure]);
  }
}

/** Parts of a scenario's measurement. */
export interface RoundsOptions {
  readonly scenario: Scenario;
  readonly contestants: readonly Contestant[];
  readonly loads: Loads;
  readonly options: BenchOptions;
}

/**
 * Measures a scenario. The bare proxy begins each round, then the gateways take turns at being
 * first.
 */
export async function runRounds(run: RoundsOptions): Promise<Rounds> {
  const { scenario, contestants, loads, options } = run;
  const { seconds, mayRefuse, firstWarmUpSeconds, warmUpSeconds } = options;
  const results = new Map<ContestantName, Measurement[]>();
  const [bare, ...gateways] = contestants;
  for (let round = 0; round < options.rounds; round++) {
    for (const contestant of [bare, ...(round % 2 === 0 ? gateways : gateways.toReversed())]) {
      if (contestant === undefined) continue;
      const warmed = round === 0 ? firstWarmUpSeconds : warmUpSeconds;
      const turn = { scenario, contestant, seconds, mayRefuse, warmUpSeconds: warmed };
      const result = await measure(loads, turn);
      results.set(contestant.name, [...(results.get(contestant.name) ?? []), result]);
    }
  }
  return new Rounds(scenario, results);
}
