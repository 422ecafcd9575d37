/** The breakers of a process, as its metric shows them. */
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import type { VendorConfig } from "../../../src/config/config.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { vendorKinds } from "../../../src/provider/index.ts";
import { type RouteTarget, Targets } from "../../../src/routing/targets.ts";

const log = pino({ level: "silent" });
const config: VendorConfig = {
  ...{ name: "v", kind: "openai-compatible", baseUrl: "http://127.0.0.1:1", apiKey: undefined },
  ...{ dialects: undefined, maxInFlight: undefined, pollsPerSecond: undefined },
  ...{ onDisconnect: "grace", nativePrefix: undefined, runBaseUrl: undefined },
  timeouts: { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000 },
  credentials: [{ name: "A", apiKey: "sk-a", weight: 1, priority: 0 }],
};

/** The route of a process. */
function routeOf(targets: Targets): RouteTarget {
  const target = targets.of({ vendor: "v", model: "m" });
  if (target === undefined) throw new Error("the vendor is not open");
  return target;
}

it("the metric of a breaker says when its pause is over (R-RTE-1)", async () => {
  const metrics = createMetrics();
  let nowMs = 0;
  const client = vendorKinds["openai-compatible"]?.create(config);
  if (client === undefined) throw new Error("no kind openai-compatible");
  onTestFinished(() => client.close());
  const vendors = new Map([["v", { config, clients: [client] as const }]]);
  const targets = new Targets({ vendors, metrics, log, clock: () => nowMs });
  const shown = async () => {
    targets.showPauses();
    const { values } = await metrics.breakerState.get();
    return values.find(({ labels }) => labels.model === "m")?.value;
  };
  expect([routeOf(targets).breaker.open, await shown()]).toEqual([undefined, 0]);
  targets.failed(routeOf(targets), "model");
  expect(await shown()).toBe(2);
  nowMs = 60_000;
  expect(await shown()).toBe(1);
});
