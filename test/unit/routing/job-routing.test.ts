/** The routes of jobs after a vendor refused one. */
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import type { VendorConfig } from "../../../src/config/config.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { vendorKinds } from "../../../src/provider/index.ts";
import { JobRouting } from "../../../src/routing/job-routing.ts";
import { Targets } from "../../../src/routing/targets.ts";

const config: VendorConfig = {
  ...{ name: "v", kind: "openai-compatible", baseUrl: "http://127.0.0.1:1", apiKey: undefined },
  ...{ dialects: undefined, maxInFlight: undefined, pollsPerSecond: undefined },
  ...{ onDisconnect: "grace", nativePrefix: undefined, runBaseUrl: undefined },
  timeouts: { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000 },
};

it.each([
  ["the time that its vendor asks for", 20_000, 20_000],
  ["a minute at most, whatever its vendor asks for", 86_400_000, 60_000],
  ["a second if its vendor names no time", undefined, 1_000],
])("a 429 pauses a route of jobs for %s", (_name, retryAfterMs, pauseMs) => {
  let nowMs = 0;
  const client = vendorKinds["openai-compatible"]?.create(config);
  if (client === undefined) throw new Error("no kind openai-compatible");
  onTestFinished(() => client.close());
  const vendors = new Map([["v", { config, clients: [client] as const }]]);
  const [metrics, log] = [createMetrics(), pino({ level: "silent" })];
  const targets = new Targets({ vendors, metrics, log, clock: () => nowMs });
  const jobs = new JobRouting({ targets, metrics });
  const [first, second] = [
    { vendor: "v", model: "first" },
    { vendor: "v", model: "second" },
  ];
  // Without a weight, the second route takes jobs only while the first is paused.
  const routes = [first, { ...second, weight: 0 }];
  const chosen = () => jobs.chooseRoute({ routes }, [first, second])?.model;
  expect(chosen()).toBe("first");
  jobs.failed({ ...first, credential: "" }, "rate_limit", { what: "status 429", retryAfterMs });
  nowMs = pauseMs - 1;
  expect(chosen()).toBe("second");
  nowMs = pauseMs;
  expect(chosen()).toBe("first");
});
