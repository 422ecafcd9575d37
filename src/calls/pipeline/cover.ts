/** Keeps a charge within its hold: the hold grows, or the charge is cut (R-MON-12). */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type Usage, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { withTimeout } from "../../core/async.ts";
import { stateWaitMs } from "../../core/limits.ts";
import type { Chunk } from "./adapter.ts";
import type { Call } from "./call.ts";
import { outOfBalance } from "./failures.ts";
import { clampCall } from "./hold-monitor.ts";
import type { Held } from "./hold.ts";

/**
 * Ensures, before a complete reply is delivered, that it can be paid for. If it costs more than
 * hold and slack, the hold grows. A reply that the hold cannot cover is not delivered, and nothing
 * is charged.
 *
 * @param costNanos the cost of the reply
 * @throws GatewayError INSUFFICIENT_BALANCE
 */
export async function coverReply<Out extends Chunk>(
  { call, plan, deps }: Held<Out>,
  costNanos: bigint,
): Promise<void> {
  if (costNanos <= (call.heldNanos ?? 0n) + plan.slackNanos) return;
  const heldNanos = await withTimeout(stateWaitMs, growHold({ call, deps }, costNanos));
  if (costNanos <= heldNanos + plan.slackNanos) return;
  const error = outOfBalance(heldNanos);
  call.end(CallEnding.OUT_OF_BALANCE, error);
  throw error;
}

/**
 * Whether the charge of a call must stay within its hold: if the key has a spend limit, if there
 * are budgets, or if the charge is only an estimate because the client disconnected. For other
 * calls, the ledger keeps the charge within the account's balance.
 */
export function isLimited({ isBudgeted, start, ending, usageSource }: Call): boolean {
  const isGuessed = ending === CallEnding.CLIENT_GONE && usageSource === UsageSource.ESTIMATED;
  return isBudgeted || start.keyLimitNanos !== undefined || isGuessed;
}

/**
 * Grows the hold of a call to its charge, for a client that disconnected. The hold followed the
 * visible text, and the vendor's report also counts hidden reasoning.
 */
export async function growToCharge<Out extends Chunk>(held: Held<Out>): Promise<void> {
  const { costNanos, heldNanos = 0n } = held.call;
  if (costNanos > heldNanos) await growInTime(held, costNanos);
}

/**
 * Keeps a charge within its hold: the hold grows as far as possible, and the part above it is not
 * charged.
 */
export async function clampToHold<Out extends Chunk>(held: Held<Out>): Promise<void> {
  const { call, deps } = held;
  const { usage, costNanos, units, discountBp, tierPrice: price = held.price } = call;
  if (usage === undefined) return;
  if (costNanos <= (call.heldNanos ?? 0n)) return;
  const heldNanos = await growInTime(held, costNanos);
  if (costNanos <= heldNanos) return;
  const costOf = (part: Usage): bigint =>
    deps.pricing.cost(price, { ...part, ...units }, discountBp);
  clampCall(call, heldNanos, costOf);
  if (call.usage !== usage) call.endClamped(outOfBalance(heldNanos));
}

/**
 * Grows a hold as far as the ledger confirms in time. A settlement must not wait for an unreachable
 * database: it then goes to the journal with the charge that is held. The settlement releases an
 * extension that is granted later.
 */
async function growInTime<Out extends Chunk>(
  held: Held<Out>,
  amountNanos: bigint,
): Promise<bigint> {
  const beforeNanos = held.call.heldNanos ?? 0n;
  return withTimeout(stateWaitMs, growHold(held, amountNanos)).catch(() => beforeNanos);
}

/** Grows the hold of a call. @returns the new hold, in nano-USD */
async function growHold<Out extends Chunk>(
  { call, deps }: Pick<Held<Out>, "call" | "deps">,
  amountNanos: bigint,
): Promise<bigint> {
  const { id, accountId, heldNanos = 0n } = call;
  if (amountNanos <= heldNanos) return heldNanos;
  const { heldNanos: extendedNanos, closed } = await deps.ledger.extend({
    id,
    accountId,
    amountNanos,
  });
  // Another process declared this one dead and settled the hold: the final charge corrects that.
  if (closed === true) return amountNanos;
  call.heldNanos = extendedNanos > heldNanos ? extendedNanos : heldNanos;
  return call.heldNanos;
}
