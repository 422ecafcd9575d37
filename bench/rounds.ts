/** A scenario in rounds: the contestants take turns, so that whatever else the machine does meets all of them. */
import type { Child } from "./child.ts";
import { type Contestant, type ContestantName, measure, type Measurement } from "./measure.ts";
import type { BenchOptions } from "./options.ts";
import type { Scenario } from "./scenario.ts";
import { type Ratio, ratioOf } from "./statistics.ts";

/** The measurements of each contestant, round by round. */
export class Rounds {
  readonly scenario: Scenario;
  readonly #results = new Map<ContestantName, Measurement[]>();

  constructor(scenario: Scenario) {
    this.scenario = scenario;
  }

  add(name: ContestantName, measurement: Measurement): void {
    this.#results.set(name, [...this.of(name), measurement]);
  }

  /** In the order of their first turns. */
  names(): readonly ContestantName[] {
    return [...this.#results.keys()];
  }

  of(name: ContestantName): readonly Measurement[] {
    return this.#results.get(name) ?? [];
  }

  /** CPU per unit of one contestant as a multiple of another's. */
  cpuRatio(dividend: ContestantName, divisor: ContestantName): Ratio {
    return ratioOf(this.#cpu(dividend), this.#cpu(divisor));
  }

  /** CPU per unit of a contestant's PostgreSQL as a multiple of the bare proxy's. */
  databaseRatio(name: ContestantName): Ratio {
    const micros = this.of(name).map(({ databaseMicros }) => databaseMicros);
    return ratioOf(micros, this.#cpu("bare proxy"));
  }

  #cpu(name: ContestantName): readonly number[] {
    return this.of(name).map(({ cpuMicros }) => cpuMicros);
  }
}

/** What a scenario is measured with. */
export interface RoundsOptions {
  readonly scenario: Scenario;
  readonly contestants: readonly Contestant[];
  readonly load: Child;
  readonly options: BenchOptions;
}

/** Measures a scenario. The bare proxy begins each round, the gateways then take turns at being first. */
export async function runRounds(run: RoundsOptions): Promise<Rounds> {
  const { scenario, contestants, load, options } = run;
  const rounds = new Rounds(scenario);
  const [bare, ...gateways] = contestants;
  for (let round = 0; round < options.rounds; round++) {
    const turns = [bare, ...(round % 2 === 0 ? gateways : gateways.toReversed())];
    for (const contestant of turns) {
      if (contestant === undefined) continue;
      const { pauses, mayRefuse, isWhole } = options;
      const seconds = (isWhole ? scenario.seconds : undefined) ?? options.seconds;
      const measured = { scenario, seconds, pauses, mayRefuse, isFirst: round === 0 };
      const result = await measure(load, contestant, measured);
      rounds.add(contestant.name, result);
    }
  }
  return rounds;
}
