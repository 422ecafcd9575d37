/** Sets money aside for a call, before its vendor is asked. */
import type { HoldVerdict, Ledger } from "../billing/ledger.ts";
import type { UnitUsage } from "../billing/price.ts";
import type { ModelConfig, PriceConfig } from "../config/config.ts";
import type { Call } from "./call.ts";
import type { AskedText, PlannedRoute } from "./door.ts";
import { holdRefused } from "./failures.ts";
import { type HoldPlan, planHold } from "./hold-growth.ts";
import type { ExchangeOptions, Pricing } from "./run-options.ts";
import { RequestTokens } from "./tokens/request-tokens.ts";

/** What is asked for. */
export interface Asked {
  readonly text: AskedText;
  readonly model: ModelConfig;
  /** See {@link Door.isLimitRequired}. */
  readonly isLimitRequired: boolean;
  readonly routes: readonly PlannedRoute[];
  /** The body for the first route's vendor, in pieces; `undefined`: that vendor is not there. */
  readonly body: readonly Buffer[] | undefined;
  /** See {@link PreparedCall.source}. */
  readonly source: Buffer | undefined;
}

/** What is held. */
export interface Held {
  readonly tokens: RequestTokens;
  readonly plan: HoldPlan;
}

/**
 * Sets the most aside that the call can cost; or, where it is streamed and may become as long as the model can
 * make it, what nearly all calls of the model cost.
 *
 * @throws GatewayError INSUFFICIENT_BALANCE
 */
export async function hold(
  call: Call,
  { text, model, isLimitRequired, routes, body, source }: Asked,
  { pricing, ledger, metrics, counter }: ExchangeOptions,
): Promise<Held> {
  const tokens = new RequestTokens({ text, routes, body, source, counter });
  const most = text.maxOutputTokens ?? model.maxOutputTokens;
  const isOpen = text.stream && (text.maxOutputTokens === undefined || isLimitRequired);
  const mostTokens = most * text.choices;
  const aheadTokens = isOpen ? model.holdOutputTokens * text.choices : mostTokens;
  const price = pricing.priceAt(model, call.startMs);
  const { units = {} } = text;
  const holding = { call, price, tokens, mostTokens, aheadTokens, units, pricing, ledger };
  const { verdict, plan } = await holdInput(holding);
  if (!verdict.admitted) {
    metrics.refusedForBalance.inc();
    throw holdRefused(verdict, plan.firstNanos, call.start.keyLimitNanos);
  }
  call.heldNanos = plan.firstNanos;
  call.priceVersion = pricing.version(price);
  return { tokens, plan };
}

interface Holding {
  readonly call: Call;
  readonly price: PriceConfig;
  readonly tokens: RequestTokens;
  readonly mostTokens: number;
  readonly aheadTokens: number;
  readonly units: UnitUsage;
  readonly pricing: Pricing;
  readonly ledger: Ledger;
}

/**
 * Holds for the most that the request can be. Where the balance does not cover that, its tokens are counted and
 * the count is held: what is refused then is refused by exact figures. Nothing is counted where even a request
 * of no tokens would cost too much, as it does for an account without money.
 */
async function holdInput(
  holding: Holding,
): Promise<{ readonly plan: HoldPlan; readonly verdict: HoldVerdict }> {
  const { call, tokens, ledger } = holding;
  const { id, accountId, keyId, keyLimitNanos, requestId } = call.start;
  const limit = keyLimitNanos === undefined ? {} : { keyLimitNanos };
  const who = { id, accountId, keyId, requestId, ...limit };
  const plan = planFor(holding, tokens.bound);
  const amountNanos = plan.firstNanos;
  const verdict = await ledger.hold({ ...who, amountNanos });
  if (verdict.admitted) return { plan, verdict };
  const mostNanos = verdict.keyRemainingNanos ?? verdict.availableNanos;
  if (planFor(holding, 0).firstNanos > mostNanos) return { plan, verdict };
  const counted = await tokens.countedBound();
  const less = counted === undefined ? plan : planFor(holding, counted);
  if (less.firstNanos >= amountNanos) return { plan, verdict };
  if (less.firstNanos > mostNanos) return { plan: less, verdict };
  const again = await ledger.hold({ ...who, amountNanos: less.firstNanos });
  return { plan: less, verdict: again };
}

function planFor(holding: Holding, input: number): HoldPlan {
  const { pricing, price, call, mostTokens, aheadTokens, units } = holding;
  const priceOf = (output: number): bigint =>
    pricing.hold(price, { input, output, ...units }, call.start.discountBp);
  return planHold({ mostTokens, aheadTokens, priceOf });
}
