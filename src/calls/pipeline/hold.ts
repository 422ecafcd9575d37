/** Holds money for a call, durably, before the first attempt (R-MON-2). */
import { holdRefused } from "../../billing/hold-refused.ts";
import type { Chunk } from "./adapter.ts";
import type { HoldPlan } from "./hold-plan.ts";
import type { Quoted } from "./quote.ts";

/** A call with a hold: it must be settled. */
export interface Held<Out extends Chunk> extends Quoted<Out> {
  readonly plan: HoldPlan;
}

/**
 * Holds the maximum cost of the request. If the balance does not cover it, the tokens are counted
 * and the exact cost is held, so that a refusal names exact figures. Nothing is counted if the
 * balance does not even cover a request with zero input tokens, as for an empty account.
 *
 * @throws GatewayError INSUFFICIENT_BALANCE
 */
export async function hold<Out extends Chunk>(quoted: Quoted<Out>): Promise<Held<Out>> {
  const { call, tokens, price, planFor, deps } = quoted;
  const { ledger, pricing, metrics } = deps;
  const { id, accountId, keyId, keyLimitNanos, requestId } = call.start;
  const keyLimit = keyLimitNanos === undefined ? {} : { keyLimitNanos };
  const holder = { id, accountId, keyId, requestId, ...keyLimit };
  let plan = planFor(tokens.bound);
  let verdict = await ledger.hold({ ...holder, amountNanos: plan.firstNanos });
  if (!verdict.admitted) {
    const { budget, keyRemainingNanos, availableNanos } = verdict;
    const spendableNanos = budget?.remainingNanos ?? keyRemainingNanos ?? availableNanos;
    const isHopeless = planFor(0).firstNanos > spendableNanos;
    const counted = isHopeless ? undefined : await tokens.countedBound();
    const smaller = counted === undefined ? plan : planFor(counted);
    if (smaller.firstNanos < plan.firstNanos) {
      plan = smaller;
      const { firstNanos: amountNanos } = plan;
      if (amountNanos <= spendableNanos) verdict = await ledger.hold({ ...holder, amountNanos });
    }
    if (!verdict.admitted) {
      metrics.refusedForBalance.inc();
      const neededNanos = plan.firstNanos;
      throw holdRefused({ verdict, neededNanos, limitNanos: keyLimitNanos, subject: "call" });
    }
  }
  call.heldNanos = plan.firstNanos;
  call.isBudgeted = verdict.isBudgeted === true;
  call.priceVersion = pricing.version(price);
  return { ...quoted, plan };
}
