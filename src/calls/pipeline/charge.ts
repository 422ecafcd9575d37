/**
 * Charges a call: its usage, by the vendor's figures or the gateway's, and its cost (R-MON-8). Runs
 * while a reply is delivered and at its end.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import type { ImageForm, PriceConfig } from "../../config/config.ts";
import { imagePriceOf } from "../../config/price.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { Estimate } from "../../tokens/request-tokens.ts";
import type { Chunk } from "./adapter.ts";
import { isWithinHold, plausibleTokens, priceOfTier } from "./charged-usage.ts";
import type { Held } from "./hold.ts";
import { type StoppedText, withinRequest } from "./metering.ts";
import type { Connection } from "./connection.ts";
import type { Opened, Reply } from "./open.ts";

/** A call with a hold, whether a vendor answered or not. */
export type Chargeable<Out extends Chunk> = Held<Out> &
  Partial<Pick<Opened<Out>, "planned" | "reply">>;

/** Sets the final usage and cost of a call; at once if the vendor reported its usage. */
export function chargeAtEnd<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  connection: Connection,
): Promise<void> | undefined {
  const isInputOwed = chargeable.call.ending === CallEnding.CLIENT_GONE && connection.isAccepted;
  const asked = connection.asked ?? chargeable.planned;
  // With `on_disconnect: abort`, the operator accepts that estimates can be below vendors' bills.
  const isCautious = isInputOwed && asked !== undefined && asked.detachedReadMs > 0;
  const estimating = estimate(chargeable, { connection, isInputOwed, isCautious });
  const owed = withVendor(chargeable, isInputOwed ? connection.asked : undefined);
  if (estimating !== undefined) {
    return estimating.then((estimated) =>
      chargeToDate(owed, { estimated, isInputOwed, isCautious }),
    );
  }
  chargeToDate(owed, isInputOwed ? { isInputOwed, isCautious } : undefined);
  return undefined;
}

/** A vendor that was stopped before its answer charges the input too. */
function withVendor<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  asked: PlannedRoute | undefined,
): Chargeable<Out> {
  if (asked === undefined || chargeable.planned !== undefined) return chargeable;
  return { ...chargeable, planned: asked };
}

/** Estimates the usage if the vendor reported none; undefined if it did, or nothing is charged. */
function estimate<Out extends Chunk>(
  { tokens, reply, routes }: Chargeable<Out>,
  { connection, isInputOwed, isCautious }: EstimateOptions,
): Promise<Estimate> | undefined {
  const hasContent = reply !== undefined && reply.kind !== "refusal";
  if (!hasContent && !isInputOwed) return undefined;
  const { usage: reported, estimated } = deliveredOf(reply);
  // A client that disconnected does not get the estimate at the end of the reply.
  if (reported !== undefined || (estimated !== undefined && !isInputOwed)) return undefined;
  const vendorModel = (connection.asked ?? routes[0])?.route.model;
  const body = reply?.kind === "whole" ? reply.body : undefined;
  return tokens.estimate({ reported, vendorModel, reply: body, isCautious });
}

interface EstimateOptions {
  readonly connection: Connection;
  readonly isInputOwed: boolean;
  /** Whether the estimate is rather too high than too low. */
  readonly isCautious: boolean;
}

interface ChargeOptions {
  readonly estimated?: Estimate | undefined;
  readonly isInputOwed?: boolean;
  readonly isCautious?: boolean;
}

const noOptions: ChargeOptions = {};

/**
 * Updates usage and cost of a call to what it consumed so far; may be repeated while it runs. The
 * vendor's cost is set even where the customer is not charged.
 *
 * @param options `estimated`: the gateway's own figures; default: the size of the request.
 * `isInputOwed`: see {@link Delivered}; `isCautious`: see {@link EstimateOptions}; both are false
 * by default
 */
export function chargeToDate<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  { estimated, isInputOwed = false, isCautious = false }: ChargeOptions = noOptions,
): void {
  const { call, request, tokens, plan, planned, first, reply, deps } = chargeable;
  const { pricing } = deps;
  const delivered = deliveredOf(reply);
  const { usage: reported, textBytes, uncountedTextBytes, units, isComplete } = delivered;
  const form = delivered.imageForm && { ...request.text.imageForm, ...delivered.imageForm };
  const whole = form === undefined ? chargeable.price : priceOfMade(chargeable, form);
  const metered = request.meter({
    reported,
    told: call.ending === CallEnding.CLIENT_GONE ? undefined : delivered.estimated,
    ...(estimated ?? { inputTokens: reported ? 0 : tokens.typical }),
    textBytes,
    uncountedTextBytes,
    stopped: isInputOwed
      ? stoppedText(reply, { isCautious, maxTokens: plan.maxTokens })
      : undefined,
    units,
    price: whole,
    isComplete: isComplete || call.ending === CallEnding.COMPLETED,
    isTextRequested: request.text.maxOutputTokens !== 0 && !request.readsPrompt,
    isInputOwed,
  });
  const { usage: used } = metered;
  call.usage = used && withinRequest(used, units, first?.features);
  call.units = metered.units;
  call.usageSource = metered.source;
  call.isCharged = metered.isCharged && used !== undefined;
  const usage = call.usage && (metered.units ? { ...call.usage, ...metered.units } : call.usage);
  const price = usage === undefined ? whole : priceOfTier(chargeable, whole, usage);
  const costNanos = usage && metered.isCharged ? pricing.cost(price, usage, call.discountBp) : 0n;
  call.costNanos = costNanos;
  call.implausibleNanos = 0n;
  const part = metered.isCharged ? plausiblePart(chargeable, costNanos) : undefined;
  if (part !== undefined) {
    call.usage = part.usage;
    call.units = part.units;
    call.costNanos = pricing.cost(price, { ...part.usage, ...part.units }, call.discountBp);
    call.implausibleNanos = costNanos - call.costNanos;
  }
  // The vendor charges for all its work, also for work that was not requested.
  if (planned?.route.costs === undefined) return;
  const ran = usage && (call.usage === used ? usage : { ...usage, ...units, ...used });
  const made = { ...(form ?? request.text.imageForm), serviceTier: used?.serviceTier };
  call.vendorCostNanos = ran && pricing.vendorCost(planned.route, ran, call.startMs, made);
}

/**
 * Returns the price of the delivered images if the vendor chose their size or quality. It never
 * exceeds the price of the hold.
 */
function priceOfMade<Out extends Chunk>(
  { call, price, imagePrices, planned, deps: { pricing } }: Chargeable<Out>,
  form: ImageForm,
): PriceConfig {
  if (imagePrices === undefined || planned?.fallback !== undefined) return price;
  const made = imagePriceOf(imagePrices, form);
  if (made === undefined || (made.image ?? 0n) >= (price.image ?? 0n)) return price;
  call.priceVersion = pricing.version(made);
  return made;
}

/** The text of a stream whose client disconnected. */
function stoppedText<Out extends Chunk>(
  reply: Reply<Out> | undefined,
  { isCautious, maxTokens }: { readonly isCautious: boolean; readonly maxTokens: number },
): StoppedText {
  const pieces = reply?.kind === "stream" ? reply.stream.textPieces : 0;
  return { isCautious, pieces, maxTokens: maxTokens > 0 ? maxTokens : Number.POSITIVE_INFINITY };
}

/** The part of a reply that was delivered. */
export function deliveredOf<Out extends Chunk>(reply: Reply<Out> | undefined) {
  if (reply?.kind === "stream") return reply.stream;
  if (reply?.kind === "whole") {
    const { usage, estimated, textBytes, units, imageForm } = reply.whole;
    const uncountedTextBytes = 0;
    return { usage, estimated, textBytes, uncountedTextBytes, units, imageForm, isComplete: true };
  }
  return nothing;
}

const nothing = {
  usage: undefined,
  estimated: undefined,
  textBytes: 0,
  uncountedTextBytes: 0,
  units: undefined,
  imageForm: undefined,
  isComplete: false,
} as const;

/** Bytes of text that came and were not delivered, because they could not be paid for. */
export function unreadBytesOf<Out extends Chunk>(reply: Reply<Out> | undefined): number {
  return reply?.kind === "stream" ? reply.stream.unreadEventBytes : 0;
}

/**
 * Returns the chargeable part of an implausible usage; undefined if the usage is plausible. Units
 * other than tokens are held for in full. Only recorded time may be a little longer than measured,
 * and images larger than a request without a size suggests.
 */
function plausiblePart<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  costNanos: bigint,
): { readonly usage: Usage; readonly units: UnitUsage | undefined } | undefined {
  const { request, reply } = chargeable;
  const { usage, units } = chargeable.call;
  if (usage === undefined || isWithinHold(chargeable, costNanos)) return undefined;
  const { units: held, maxImages = held?.images } = request.text;
  const tokens = plausibleTokens(chargeable, usage, deliveredOf(reply).textBytes);
  if (units === undefined || held === undefined) {
    return tokens === usage ? undefined : { usage: tokens, units };
  }
  const images = atMost(units.images, maxImages);
  const seconds = atMost(units.seconds, held.seconds && 2 * held.seconds);
  const characters = atMost(units.characters, held.characters);
  const searches = atMost(units.searches, held.searches && 2 * held.searches);
  const isSame =
    tokens === usage &&
    images === units.images &&
    seconds === units.seconds &&
    characters === units.characters &&
    searches === units.searches;
  const most = { images, seconds, characters, searches };
  return isSame ? undefined : { usage: tokens, units: { ...units, ...most } };
}

function atMost(made: number | undefined, max: number | undefined): number | undefined {
  return made === undefined || max === undefined ? made : Math.min(made, max);
}
