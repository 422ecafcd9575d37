/** Handles replies that cost more than their hold (R-MON-12), from vendors that ignore the output limit. */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { stateWaitMs } from "../../config/limits.ts";
import { withTimeout } from "../../core/async.ts";
import { clampToBalance } from "./hold-monitor.ts";
import type { Chunk } from "./adapter.ts";
import { outOfBalance } from "./failures.ts";
import type { Held } from "./hold.ts";
import type { Opened } from "./open.ts";

/** Output tokens beyond the limit that do not count as an overrun: some vendors count the tokens that end a reply. */
const toleranceTokens = 16;

/**
 * Ensures that a complete reply can be paid for before it is delivered: where it costs more than hold and slack, the
 * hold grows. A reply that the hold cannot cover is not delivered, and nothing is charged.
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
 * Keeps a charge within the key's spend limit and the budgets: the hold grows to the charge, and output beyond the hold is not charged.
 * The ledger itself keeps a charge within the account's balance.
 */
export async function clampToLimits<Out extends Chunk>(held: Held<Out>): Promise<void> {
  const { call } = held;
  if (call.isBudgeted || call.start.keyLimitNanos !== undefined) await clampToHold(held);
}

/** Keeps a charge within what can be held for it: the hold grows, and what it still does not cover is not charged. */
export async function clampToHold<Out extends Chunk>(held: Held<Out>): Promise<void> {
  const { call, price, deps } = held;
  const { usage, costNanos, units, discountBp } = call;
  if (usage === undefined) return;
  if (costNanos <= (call.heldNanos ?? 0n)) return;
  const heldNanos = await growInTime(held, costNanos);
  if (costNanos <= heldNanos) return;
  const costOf = (part: Usage): bigint =>
    deps.pricing.cost(price, { ...part, ...units }, discountBp);
  call.usage = clampToBalance(usage, heldNanos, costOf);
  call.costNanos = costOf(call.usage);
}

/**
 * Grows a hold as far as the ledger says in time. A settlement must not wait for a database that is away: it goes to the
 * journal then, with the charge that is held. An extension that is granted later is released by the settlement.
 */
async function growInTime<Out extends Chunk>(
  held: Held<Out>,
  amountNanos: bigint,
): Promise<bigint> {
  const beforeNanos = held.call.heldNanos ?? 0n;
  return withTimeout(stateWaitMs, growHold(held, amountNanos)).catch(() => beforeNanos);
}

/**
 * Marks the route of a reply that exceeds the output limit of its request. Only the vendor's own count proves that. By an
 * estimate, a client that asks for long lines of dashes (64 bytes a token) and disconnects would mark it for everybody.
 */
export function markOverrun<Out extends Chunk>({
  call,
  request,
  planned,
  reply,
  deps,
}: Held<Out> & Partial<Pick<Opened<Out>, "planned" | "reply">>): void {
  const { maxOutputTokens, choices } = request.text;
  if (!maxOutputTokens || planned === undefined || reply === undefined) return;
  if (reply.kind === "refusal") return;
  const { usage: reported } = reply.kind === "whole" ? reply.whole : reply.stream;
  if (reported === undefined) return;
  const { outputTokens } = reported;
  const limitTokens = maxOutputTokens * choices;
  if (outputTokens <= limitTokens + toleranceTokens) return;
  deps.unlimitedRoutes.add(planned.route, { callId: call.id, limitTokens, outputTokens });
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
  // Another process took this one for dead and settled the hold: the final charge corrects that.
  if (closed === true) return amountNanos;
  call.heldNanos = extendedNanos > heldNanos ? extendedNanos : heldNanos;
  return call.heldNanos;
}
