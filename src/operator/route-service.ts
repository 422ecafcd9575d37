/** Shows the health of routes and credentials, from what all processes have stored. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Pool } from "pg";
import {
  BreakerState,
  RouteHealthSchema,
  type RouteService,
} from "../../gen/uas/operator/v1/route_service_pb.ts";
import type { Config } from "../config/config.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { type BreakerKey, readBreakers } from "../inference/routing/breaker-store.ts";
import { latencyPercentile } from "../inference/routing/health.ts";
import { readHealth, type StoredHealth } from "../inference/routing/health-store.ts";

/** Creates the service. */
export function createRouteService({
  pool,
  config,
}: {
  readonly pool: Pick<Pool, "query">;
  readonly config: Config;
}): ServiceImpl<typeof RouteService> {
  return {
    async getRouteHealth({ vendor }) {
      const keys = keysOf(config).filter((key) => vendor === "" || key.vendor === vendor);
      const [health, breakers] = await mapDatabaseLoss(
        Promise.all([readHealth(pool), readBreakers(pool)]),
      );
      const healthBy = byKey(health);
      const breakersBy = byKey(breakers);
      const routes = keys.map((key) => {
        const found = healthBy.get(textOf(key));
        const open = breakersBy.get(textOf(key));
        const nowMs = Date.now();
        return create(RouteHealthSchema, {
          ...key,
          breaker: stateOf(open),
          ...(open && {
            breakerFailure: open.failure,
            probeTime: timestampFromMs(Math.round(nowMs + open.waitMs)),
          }),
          ...(found && healthFields(found)),
        });
      });
      return { routes };
    },
  };
}

/** The routes and credentials that the configuration has, by vendor. */
function keysOf({ vendors, models }: Config): readonly BreakerKey[] {
  const all = [...models.values()].flatMap((model) => model.routes);
  return [...vendors.values()].flatMap(({ name: vendor, credentials = [] }) => {
    const names = new Set(all.filter((route) => route.vendor === vendor).map(({ model }) => model));
    if (names.size === 0) return [];
    return [
      ...[...names].map((model) => ({ vendor, model, credential: "" })),
      ...credentials.map(({ name }) => ({ vendor, model: "", credential: name })),
    ];
  });
}

function textOf({ vendor, model, credential }: BreakerKey): string {
  return JSON.stringify([vendor, model, credential]);
}

function byKey<Item extends BreakerKey>(items: readonly Item[]): ReadonlyMap<string, Item> {
  return new Map(items.map((item) => [textOf(item), item]));
}

function stateOf(open: { readonly waitMs: number } | undefined): BreakerState {
  if (open === undefined) return BreakerState.CLOSED;
  return open.waitMs > 0 ? BreakerState.OPEN : BreakerState.HALF_OPEN;
}

function healthFields({
  counts,
  inFlight,
  failure,
}: StoredHealth): MessageInitShape<typeof RouteHealthSchema> {
  const [median, slow] = [latencyPercentile(counts, 0.5), latencyPercentile(counts, 0.95)];
  return {
    attemptCount: counts.attempts,
    failedCount: counts.failures,
    inFlight,
    ...(median !== undefined && { medianDuration: durationFromMs(median) }),
    ...(slow !== undefined && { slowDuration: durationFromMs(slow) }),
    ...(failure && { failure: failure.what, failureTime: timestampFromDate(failure.time) }),
  };
}
