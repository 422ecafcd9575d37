/** Translating between styles, against relaying: the same gateway under the same load. */
import { measureBody } from "./body.ts";
import type { Child } from "./child.ts";
import type { Installation } from "./gateway.ts";
import { type Contestant, measure, type Measurement, median } from "./measure.ts";
import type { BenchOptions } from "./options.ts";
import { type CrossResult, printBodies, printCross } from "./report.ts";
import { crossScenarios, pacedModel, pacedScenario } from "./scenario.ts";
import type { StyleName } from "./style.ts";

/** What is measured. */
export interface CrossRun {
  readonly installation: Installation;
  readonly gateway: Child;
  readonly load: Child;
  readonly key: string;
}

/** Translating between styles, against relaying chat completions: the same gateway, the same load. */
export async function benchCross(options: BenchOptions, cross: CrossRun): Promise<void> {
  const paced = pacedScenario();
  const measureOne = async (caller: StyleName, vendor: StyleName): Promise<Measurement> => {
    const { seconds } = options;
    const contestant: Contestant = {
      name: "gateway",
      process: cross.gateway,
      port: cross.installation.port,
      key: cross.key,
      model: () => pacedModel(vendor),
    };
    const scenario = { ...paced, style: caller };
    const results: Measurement[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const isFirst = round === 0;
      results.push(await measure(cross.load, contestant, { scenario, seconds, isFirst }));
    }
    return median(results);
  };
  const relayed = await measureOne("chat", "chat");
  const results: CrossResult[] = [];
  for (const { title, caller, vendor } of crossScenarios) {
    results.push({ title, measurement: await measureOne(caller, vendor) });
  }
  printCross(relayed, results);
  printBodies(crossScenarios.map((each) => measureBody(each.caller, each.vendor)));
}
