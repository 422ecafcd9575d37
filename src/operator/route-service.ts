/** The RPC of RouteService: the health of routes and credentials, from the records of calls. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Pool } from "pg";
import {
  BreakerState,
  type RouteHealth,
  RouteHealthSchema,
  type RouteService,
} from "../../gen/uas/operator/v1/route_service_pb.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { rateMember } from "../core/rate-limits.ts";
import {
  percentile,
  readRouteHealth,
  type RecordedHealth,
  targetKey,
  type TargetName,
} from "./route-health.ts";

/** Creates the service. */
export function createRouteService({
  pool,
  config,
  clock,
}: {
  readonly pool: Pick<Pool, "query">;
  readonly config: Config;
  readonly clock: Clock;
}): ServiceImpl<typeof RouteService> {
  return {
    async getRouteHealth({ vendor }) {
      const all = keysOf(config).filter(({ key }) => vendor === "" || key.vendor === vendor);
      const nowMs = clock.now();
      const health = await mapDatabaseLoss(readRouteHealth(pool, config, nowMs));
      const routes = all.map(({ key, configured }) => {
        const found = health.get(targetKey(key));
        return create(RouteHealthSchema, {
          ...key,
          ...configured,
          ...(found ? healthFields(found, nowMs) : { breaker: BreakerState.CLOSED }),
        });
      });
      return { routes };
    },
  };
}

/** A route or credential; for a credential, with its configuration. */
interface HealthKey {
  readonly key: TargetName;
  readonly configured?: Pick<RouteHealth, "weight" | "priority" | "rateLimits">;
}

/** The routes and credentials that the configuration has, by vendor. */
function keysOf({ vendors, models }: Config): readonly HealthKey[] {
  const all = [...models.values()].flatMap((model) => model.routes);
  return [...vendors.values()].flatMap(({ name: vendor, credentials = [] }) => {
    const names = new Set(all.filter((route) => route.vendor === vendor).map(({ model }) => model));
    if (names.size === 0) return [];
    return [
      ...[...names].map((model) => ({ key: { vendor, model, credential: "" } })),
      ...credentials.map(({ name, weight, priority, limits }) => ({
        key: { vendor, model: "", credential: name },
        configured: { weight, priority, ...rateMember(limits ?? {}) },
      })),
    ];
  });
}

const breakerStates = {
  closed: BreakerState.CLOSED,
  open: BreakerState.OPEN,
  half_open: BreakerState.HALF_OPEN,
} as const;

function healthFields(
  { attempts, failures, durationsMs, lastFailure, breaker }: RecordedHealth,
  nowMs: number,
): MessageInitShape<typeof RouteHealthSchema> {
  const { open } = breaker;
  const median = percentile(durationsMs, 0.5);
  const slow = percentile(durationsMs, 0.95);
  return {
    breaker: breakerStates[breaker.state(nowMs)],
    ...(open && {
      breakerFailure: open.failure,
      probeTime: timestampFromMs(Math.round(open.probeAtMs)),
    }),
    attemptCount: attempts,
    failedCount: failures,
    ...(median !== undefined && { medianDuration: durationFromMs(median) }),
    ...(slow !== undefined && { slowDuration: durationFromMs(slow) }),
    ...(lastFailure && {
      failure: lastFailure.failure,
      failureTime: timestampFromMs(Math.round(lastFailure.timeMs)),
    }),
  };
}
