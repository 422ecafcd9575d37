/** Preferences of a request order the routes of a model. */
import { expect, test } from "vitest";
import type { DatedPrice } from "../../../src/config/config.ts";
import type { PlannedRoute } from "../../../src/routing/planned-route.ts";
import { applyPreferences } from "../../../src/routing/preferences.ts";
import type { Targets } from "../../../src/routing/targets.ts";
import { priceDefault } from "../../support/gateway.ts";

const nowMs = 1_800_000_000_000;

function planned(vendor: string, costs?: readonly DatedPrice[]): PlannedRoute {
  const route = { vendor, model: "m", ...(costs && { costs }) };
  return { route, dialect: undefined, detachedReadMs: 0 };
}

test("sorted by price, a route comes first by the cost that its calls are booked with, also before the first date of its list", () => {
  const cost = (fromMs: number, input: bigint): DatedPrice => ({
    fromMs,
    price: { ...priceDefault, input, output: 0n },
  });
  const routes = [
    planned("unknown"),
    planned("dear", [cost(-Infinity, 1n), cost(nowMs - 1, 3n)]),
    planned("later", [cost(nowMs + 1, 2n), cost(nowMs + 2, 9n)]),
    planned("cheap", [cost(nowMs, 1n), cost(nowMs + 1, 9n)]),
  ];
  const sorted = applyPreferences(
    routes,
    { sort: "price", allowFallbacks: true },
    { targets: {} as Targets, nowMs },
  );
  expect(sorted.map(({ route }) => route.vendor)).toEqual(["cheap", "later", "dear", "unknown"]);
});
