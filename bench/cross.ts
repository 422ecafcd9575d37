/** Translating between styles, against relaying: the same gateway under the same load. */
import type { Child } from "./child.ts";
import { type Contestant, measure, type Measurement } from "./measure.ts";
import type { BenchOptions } from "./options.ts";
import { type CrossResult, printCross } from "./report.ts";
import { crossScenarios, pacedModel, scenarioOf } from "./scenario.ts";
import { medianOf } from "./statistics.ts";
import type { StyleName } from "./style.ts";

/** What is measured. */
export interface CrossRun {
  readonly gateway: Contestant;
  readonly load: Child;
}

/** Translating between styles, against relaying chat completions: the same gateway, the same load. */
export async function benchCross(options: BenchOptions, cross: CrossRun): Promise<void> {
  const paced = scenarioOf("paced");
  const measureOne = async (caller: StyleName, vendor: StyleName): Promise<Measurement> => {
    const { seconds, pauses, mayRefuse } = options;
    const contestant: Contestant = { ...cross.gateway, model: () => pacedModel(vendor) };
    const scenario = { ...paced, style: caller };
    const results: Measurement[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const measured = { scenario, seconds, pauses, mayRefuse, isFirst: round === 0 };
      results.push(await measure(cross.load, contestant, measured));
    }
    return medianOf(results);
  };
  const relayed = await measureOne("chat", "chat");
  const results: CrossResult[] = [];
  for (const { title, caller, vendor } of crossScenarios) {
    results.push({ title, measurement: await measureOne(caller, vendor) });
  }
  printCross(relayed, results);
}
