/** Builds the operator room. */
import { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { version } from "../core/package.ts";
import type { Database } from "../db/database.ts";
import { createTextRunner } from "../calls/adapters/text-task.ts";
import type { VendorTarget } from "../routing/targets.ts";
import type { Upstream } from "../routing/upstream.ts";
import type { AlertRpcOptions } from "./alert-rpcs.ts";
import { createOperatorService } from "./service.ts";
import type { VendorHealth, VendorTestResult, VendorRpcOptions } from "./vendor-rpcs.ts";
import { type Service, serve } from "../core/contract-rules.ts";

/** Options of {@link createOperatorRoom}. */
export interface OperatorRoomOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly config: Config;
  readonly upstream: Upstream;
  readonly testAlerts: AlertRpcOptions["testAlerts"];
}

/** Timeout of a vendor test. */
const testMs = 30_000;

/** The prompt of a vendor test: short, with a short answer that needs no reasoning. */
const testParams = { prompt: "Reply with the single word OK.", maxTokens: 64 };

/** Creates the operator service. */
export function createOperatorRoom({
  database,
  clock,
  config,
  upstream,
  testAlerts,
}: OperatorRoomOptions): Service {
  const { pool, orm } = database;
  const vendorHealth = (vendor: string) => lastOutcomes(upstream.targets.vendor(vendor), clock);
  const test = createTest(upstream, clock);
  return serve(
    OperatorService,
    createOperatorService({ pool, orm, clock, config, version, vendorHealth, test, testAlerts }),
  );
}

/** The last outcomes of a vendor in this process, with any of its credentials. */
function lastOutcomes(target: VendorTarget | undefined, clock: Clock): VendorHealth {
  const all = (target?.credentials ?? []).map(({ last }) => last);
  return {
    inFlight: target?.inFlight ?? 0,
    failure: latest(
      all.map(({ failure }) => failure),
      clock,
    ),
    success: latest(
      all.map(({ success }) => success),
      clock,
    ),
  };
}

/**
 * The latest outcome, with its time in milliseconds since 1970.
 *
 * @param outcomes with times by `performance.now()`
 */
function latest<Outcome extends { readonly atMs: number }>(
  outcomes: readonly (Outcome | undefined)[],
  clock: Clock,
): Outcome | undefined {
  const known = outcomes.filter((each) => each !== undefined);
  const [last] = known.toSorted((a, b) => b.atMs - a.atMs);
  return last && { ...last, atMs: Math.round(clock.now() - performance.now() + last.atMs) };
}

function createTest(upstream: Upstream, clock: Clock): VendorRpcOptions["test"] {
  const run = createTextRunner(upstream, clock);
  return async (model, vendor): Promise<VendorTestResult> => {
    const route = model.routes.find((each) => each.vendor === vendor);
    if (route === undefined) return { text: undefined, error: `no route to ${vendor}` };
    try {
      const signal = AbortSignal.timeout(testMs);
      const made = await run({ model, route, params: testParams, signal });
      return { text: "done" in made ? (made.done.text ?? "") : "", error: "" };
    } catch (error) {
      return { text: undefined, error: error instanceof Error ? error.message : String(error) };
    }
  };
}
