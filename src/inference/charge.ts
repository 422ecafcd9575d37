/** Writes on a call what it consumed and what that costs. */
import type { SettleOperation } from "../billing/ledger.ts";
import type { ModelConfig, RouteConfig } from "../config/config.ts";
import type { Call } from "./call.ts";
import type { Metered } from "./metering.ts";
import type { Pricing } from "./run-options.ts";

/** What {@link charge} needs. */
export interface Charge {
  readonly metered: Metered;
  readonly model: ModelConfig;
  /** The route that answered; `undefined`: none. */
  readonly route: RouteConfig | undefined;
  readonly pricing: Pricing;
}

/**
 * Charges the call: may be repeated while it runs, the last time counts. What a vendor takes for a call that
 * its customer has for nothing is still known.
 */
export function charge(call: Call, { metered, model, route, pricing }: Charge): void {
  const { source, isCharged, units } = metered;
  const { startMs } = call;
  call.usage = metered.usage;
  call.units = units;
  const usage = metered.usage && { ...metered.usage, ...units };
  call.usageSource = source;
  call.isCharged = isCharged && usage !== undefined;
  call.costNanos =
    usage && isCharged
      ? pricing.cost(pricing.priceAt(model, startMs), usage, call.start.discountBp)
      : 0n;
  call.vendorCostNanos = usage && route && pricing.vendorCost(route, usage, startMs);
}

/** The end of the call's hold, with its record. */
export function settlement(call: Call): SettleOperation {
  const { id, accountId } = call.start;
  return { id, accountId, costNanos: call.costNanos, record: call.toRow() };
}
