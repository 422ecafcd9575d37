/**
 * Settles every call, however it ended: usage, charge, record and ledger, then log and metrics (R-MON-8).
 */
import type { Logger } from "pino";
import { CallEnding, CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type Usage, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { callRecord } from "../../billing/calls/call-record.ts";
import type { UnitUsage } from "../../billing/prices/pricing.ts";
import type { ImageForm, PriceConfig } from "../../config/config.ts";
import { stateWaitMs } from "../../core/limits.ts";
import { imagePriceOf } from "../../config/price.ts";
import { possiblePrices, servedPrice } from "../../config/tier-prices.ts";
import { withTimeout } from "../../core/async.ts";
import type { GatewayError } from "../../core/errors.ts";
import { writeInfoLine } from "../../observe/log.ts";
import { countVendorLoss, type Metrics } from "../../observe/metrics.ts";
import { formatUsd, nanosPerUsd } from "../../core/money.ts";
import { inputOnly, type StoppedText, withinRequest } from "./metering.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import { average } from "../../routing/targets.ts";
import type { Estimate } from "../../tokens/request-tokens.ts";
import type { Chunk } from "./adapter.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import { outOfBalance } from "./failures.ts";
import { clampCall, type HoldMonitor } from "./hold-monitor.ts";
import type { Held } from "./hold.ts";
import {
  chargeablePart,
  isPlausible,
  limitTokensOf,
  plausibleFacts,
  reportImplausible,
} from "./plausible.ts";
import type { Connection, Opened, Reply } from "./open.ts";

/** A call with the results of the phases that it reached; at least admitted. */
export type Reached<Out extends Chunk> = Admitted<Out> &
  Partial<Omit<Opened<Out>, keyof Admitted<Out>>>;

/** A call with a hold, whether a vendor answered or not. */
type Chargeable<Out extends Chunk> = Held<Out> & Partial<Pick<Opened<Out>, "planned" | "reply">>;

/** The progress of a delivery, for the settlement. */
export interface Delivery {
  /** Whether the client has the whole reply. */
  isDone: boolean;
  /** Whether a complete reply is withheld because it cannot be paid for: nothing is charged. */
  isWithheld: boolean;
  /** Whether the reply reports the cost: it is final. */
  isCostReported: boolean;
  /** The monitor of a stream; `undefined`: the reply is none. */
  monitor: HoldMonitor | undefined;
}

/** A delivery that has not begun. */
export function newDelivery(): Delivery {
  return { isDone: false, isWithheld: false, isCostReported: false, monitor: undefined };
}

/** The state of attempts and delivery when a call ends. */
export interface CallEnd {
  readonly connection: Connection;
  readonly delivery: Delivery;
}

/**
 * Charges the delivered usage, releases the rest of the hold and writes the record. A call without a hold is only
 * recorded. Resolves when the settlement is durable.
 */
export async function settle<Out extends Chunk>(
  reached: Reached<Out>,
  { connection, delivery }: CallEnd,
): Promise<void> {
  const { call, request, deps } = reached;
  connection.close(deliveredOf(reached.reply).usage);
  if (reached.reply?.kind === "stream")
    measurePace(call, reached.reply.stream.textBytes, connection);
  const { monitor, isDone } = delivery;
  if (monitor !== undefined) {
    deps.streams.delete(monitor);
    monitor.end();
  }
  const { dropped } = connection;
  const { droppedOfReply = [] } = request ?? {};
  if (dropped.length + droppedOfReply.length > 0) {
    call.dropped = [...new Set([...dropped, ...droppedOfReply])];
  }
  connection.client.endDelivered(isDone);
  if (!isHeld(reached)) {
    deps.ledger.record(callRecord(call));
    reportCall(call, deps);
    return;
  }
  // A charge that the reply reports, or that the stop of a reply has decided, is final.
  if (monitor?.isUsedUp !== true && !delivery.isCostReported) {
    const charging = chargeAtEnd(reached, connection);
    if (charging !== undefined) await charging;
    if (delivery.isWithheld) {
      call.isCharged = false;
      call.costNanos = 0n;
    }
    if (isLimited(call)) await clampToHold(reached);
    else if (call.ending === CallEnding.CLIENT_GONE) await growToCharge(reached);
  }
  markOverrun(reached);
  reportLoss(reached);
  if (reached.planned) {
    const { usage } = deliveredOf(reached.reply);
    deps.upstream.reportUsage(reached.planned.route, usage, reached.price);
  }
  const isWithheld = delivery.isWithheld || unreadBytesOf(reached.reply) > 0;
  if (isWithheld) estimateVendorCost(reached);
  reportCall(call, deps, isWithheld);
  const { id, accountId, costNanos } = call;
  await deps.ledger.settle({ id, accountId, costNanos, record: callRecord(call) });
}

/** Bytes of text that came and were not delivered, because they could not be paid for. */
function unreadBytesOf<Out extends Chunk>(reply: Reply<Out> | undefined): number {
  return reply?.kind === "stream" ? reply.stream.unreadEventBytes : 0;
}

/** Sets the vendor's cost of a reply that was not delivered, or not to its end. Where the route has no `cost`, the model's
 * own price is the estimate: the loss is visible in any case. */
function estimateVendorCost<Out extends Chunk>({
  call,
  price,
  planned,
  reply,
  request,
  tokens,
  deps: { pricing },
}: Chargeable<Out>): void {
  if (planned === undefined) return;
  const unreadTokens = estimateTokens(unreadBytesOf(reply));
  const usage = call.usage ?? inputOnly(tokens.typical);
  const made = { ...usage, ...call.units, outputTokens: usage.outputTokens + unreadTokens };
  const { route } = planned;
  call.vendorCostNanos =
    route.costs === undefined
      ? pricing.cost(call.tierPrice ?? price, made, 0)
      : pricing.vendorCost(route, made, call.startMs, {
          ...request.text.imageForm,
          serviceTier: call.usage?.serviceTier,
        });
}

/** Shorter replies say nothing about a vendor's speed, in milliseconds. */
const paceMsMin = 100;

/** Measures how fast a route generates, for requests that sort routes by it. */
function measurePace(call: Call, textBytes: number, { destination }: Connection): void {
  const { contentMs } = call;
  if (destination === undefined || contentMs < paceMsMin) return;
  const { pace } = destination.route;
  pace.bytesPerSecond = average(pace.bytesPerSecond, (textBytes * 1_000) / contentMs);
}

function isHeld<Out extends Chunk>(reached: Reached<Out>): reached is Reached<Out> & Held<Out> {
  return reached.plan !== undefined;
}

/** Sets the final usage and cost of a call; at once where the vendor reported its usage. */
export function chargeAtEnd<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  connection: Connection,
): Promise<void> | undefined {
  const isInputOwed = chargeable.call.ending === CallEnding.CLIENT_GONE && connection.isAccepted;
  const asked = connection.asked ?? chargeable.planned;
  // An operator that stops vendors at once accepts that estimates can be below their bills.
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

/** Estimates the usage where the vendor reported none; `undefined`: it did, or nothing is charged. */
function estimate<Out extends Chunk>(
  { tokens, reply, routes }: Chargeable<Out>,
  { connection, isInputOwed, isCautious }: EstimateOptions,
): Promise<Estimate> | undefined {
  const hasContent = reply !== undefined && reply.kind !== "refusal";
  if (!hasContent && !isInputOwed) return undefined;
  const { usage: reported, estimated } = deliveredOf(reply);
  // The end of a reply that its client does not get reports nothing.
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
 * Updates usage and cost of a call to what it consumed so far; may be repeated while it runs. The vendor's cost is set
 * even where the customer is not charged.
 *
 * @param options `estimated`: the gateway's own figures; default: the size of the request. `isInputOwed`: see
 * {@link Delivered}; `isCautious`: see {@link EstimateOptions}; both are false by default
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
  // The vendor charges all that it ran, asked or not.
  if (planned?.route.costs === undefined) return;
  const ran = usage && (call.usage === used ? usage : { ...usage, ...units, ...used });
  const made = { ...(form ?? request.text.imageForm), serviceTier: used?.serviceTier };
  call.vendorCostNanos = ran && pricing.vendorCost(planned.route, ran, call.startMs, made);
}

/**
 * The price of the service tier that served a call: of the one that the reply names, else of the dearest that the request
 * allows.
 */
function priceOfTier<Out extends Chunk>(
  { call, first, deps: { pricing } }: Chargeable<Out>,
  price: PriceConfig,
  usage: Usage & UnitUsage,
): PriceConfig {
  // A fallback model may have none, unlike the one before it.
  call.tierPrice = undefined;
  // As for nearly every model.
  if (price.serviceTiers === undefined) return price;
  const served = servedPrice(price, usage.serviceTier);
  const possible = served ? [served] : possiblePrices(price, first?.features?.serviceTiers);
  const costOf = (each: PriceConfig): bigint => pricing.cost(each, usage, call.discountBp);
  const dearest = possible.reduce((most, each) => (costOf(each) > costOf(most) ? each : most));
  call.priceVersion = pricing.version(dearest);
  call.tierPrice = dearest;
  return dearest;
}

/** The price of the images that were made, where the vendor chose their size or quality. Never above that of the hold. */
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
function deliveredOf<Out extends Chunk>(reply: Reply<Out> | undefined) {
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

/** `COMPLETED` → `completed`, by number. */
const endingWords = new Map(
  CallEndingSchema.values.map((value) => [value.number, value.localName.toLowerCase()]),
);

/** Writes the log line of an ended call, and counts it in the metrics. @param isWithheld whether a part of its reply was
 * not delivered, because it could not be paid for. Default false */
export function reportCall(
  call: Call,
  { log, metrics }: { log: Logger; metrics: Metrics },
  isWithheld = false,
): void {
  const ending = endingWords.get(call.ending) ?? "";
  const { usage, model, vendor } = call;
  writeInfoLine(log, logLine(call, ending));
  // Without a hold the client may have invented the model's name: it must not become a metric label.
  if (call.heldNanos === undefined) return;
  const series = metrics.callSeries(model, vendor, ending);
  series.duration.observe(call.durationMs / 1000);
  metrics.overhead.observe(call.overheadMs / 1000);
  if (call.firstByteMs > 0) series.firstByte.observe(call.firstByteMs / 1000);
  if (call.costNanos > 0n) series.charged.inc(Number(call.costNanos) / Number(nanosPerUsd));
  const { vendorCostNanos = 0n } = call;
  if (vendorCostNanos > 0n) {
    series.vendorCost.inc(Number(vendorCostNanos) / Number(nanosPerUsd));
    countVendorLoss(metrics, call.costNanos, vendorCostNanos, isWithheld);
  }
  if (call.attempts !== undefined) countAttempts(metrics, call.attempts);
  if (usage !== undefined) {
    series.inputTokens.inc(usage.inputTokens);
    series.outputTokens.inc(usage.outputTokens);
  }
}

/** Counts what vendors may take for attempts that were abandoned. */
function countAttempts({ platformLoss }: Metrics, attempts: NonNullable<Call["attempts"]>): void {
  for (const { vendor_cost: cost } of attempts) {
    if (cost !== undefined) platformLoss.inc({ reason: "abandoned_attempt" }, Number(cost));
  }
}

/** The members of a call's log line. */
function logLine(call: Call, ending: string): string {
  const { usage, costNanos, vendorCostNanos, errorCode } = call;
  let line =
    `,"requestId":${json(call.requestId)},"callId":"${call.id}","accountId":"${call.accountId}"` +
    `,"keyId":"${call.keyId}","path":${json(call.path)},"model":${json(call.model.slice(0, 256))}` +
    `,"vendor":${json(call.vendor)},"stream":${call.stream},"status":${call.status}`;
  if (errorCode !== "") line += `,"errorCode":"${errorCode}"`;
  line += `,"ending":"${ending}"`;
  if (usage !== undefined) {
    line +=
      `,"inputTokens":${usage.inputTokens},"cachedInputTokens":${usage.cachedInputTokens}` +
      `,"outputTokens":${usage.outputTokens}`;
  }
  line += `,"cost":"${formatUsd(costNanos)}"`;
  if (vendorCostNanos !== undefined) line += `,"vendorCost":"${formatUsd(vendorCostNanos)}"`;
  const durationMs = Math.round(call.durationMs);
  return `${line},"durationMs":${durationMs},"firstByteMs":${Math.round(call.firstByteMs)},"msg":"call"`;
}

/** A text as JSON. Nearly all texts need no escapes. */
function json(text: string): string {
  return /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Logs the cause of a failed call, which its client does not see. */
export function logFailure(call: Call, error: GatewayError, log: Logger): void {
  const { ending, start, vendor } = call;
  const { internal, cause, meaning } = error;
  const fields = { requestId: start.requestId, callId: start.id, vendor, internal, err: cause };
  if (ending === CallEnding.GATEWAY_FAILED) log.error(fields, "a call failed");
  else if (ending === CallEnding.UPSTREAM_FAILED) log.warn(fields, "a vendor failed a call");
  else if (meaning.source === "gateway") log.warn(fields, "a call could not be served");
}

/** Logs that a reply could not be stored: later requests cannot refer to it. */
export function logStoreFailure({ start }: Call, error: unknown, log: Logger): void {
  const fields = { requestId: start.requestId, callId: start.id, err: error };
  log.warn(fields, "a reply could not be stored: later requests cannot refer to it");
}

// Handles replies that cost more than their hold (R-MON-12), from vendors that ignore the output limit.

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

/** Whether the key's spend limit or budgets bind a call: its charge must then stay within its hold. The ledger itself
 * keeps a charge within the account's balance. So must what is only estimated because the client disconnected. */
function isLimited({ isBudgeted, start, ending, usageSource }: Call): boolean {
  const isGuessed = ending === CallEnding.CLIENT_GONE && usageSource === UsageSource.ESTIMATED;
  return isBudgeted || start.keyLimitNanos !== undefined || isGuessed;
}

/** Grows the hold of a client that disconnected to the charge: hidden reasoning is in the vendor's report only. */
async function growToCharge<Out extends Chunk>(held: Held<Out>): Promise<void> {
  const { costNanos, heldNanos = 0n } = held.call;
  if (costNanos > heldNanos) await growInTime(held, costNanos);
}

/** Keeps a charge within what can be held for it: the hold grows, and what it still does not cover is not charged. */
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

/** No tokenizer has longer tokens, in bytes of text: o200k_base has one of 128 spaces. */
const tokenBytesMax = 128;

/**
 * Counts a reply that exceeds the output limit of its request, or keeps it. The first is proven by the vendor's own count of
 * what the limit is for, or by more text than so many tokens can be. By an estimate, a client that asks for long lines of
 * dashes (64 bytes a token) and disconnects would prove it.
 */
function markOverrun<Out extends Chunk>({
  call,
  request,
  planned,
  reply,
  deps,
}: Held<Out> & Partial<Pick<Opened<Out>, "planned" | "reply">>): void {
  const limitTokens = limitTokensOf(request);
  if (!limitTokens || planned === undefined || reply === undefined) return;
  if (reply.kind === "refusal") return;
  const { usage: reported, textBytes } = reply.kind === "whole" ? reply.whole : reply.stream;
  const leastTokens = Math.ceil((textBytes + unreadBytesOf(reply)) / tokenBytesMax);
  // Vendors count reasoning, and predictions that the model rejected, as output outside the limit.
  const { outputTokens: counted = 0, reasoningTokens = 0 } = reported ?? {};
  const rejected = reported?.rejectedPredictionTokens ?? 0;
  const outputTokens = Math.max(counted - reasoningTokens - rejected, leastTokens);
  const { accountId } = call;
  if (outputTokens <= limitTokens + toleranceTokens) {
    return deps.unlimitedRoutes.kept(planned.route, accountId);
  }
  const overrun = { callId: call.id, limitTokens, outputTokens };
  deps.unlimitedRoutes.add(planned.route, accountId, overrun);
}

/**
 * What is charged of a usage that cannot be true; undefined if it can. Units other than tokens are held for in full: only
 * recorded time may be a little longer than it was measured, and images larger than a request without a size suggests.
 */
function plausiblePart<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  costNanos: bigint,
): { readonly usage: Usage; readonly units: UnitUsage | undefined } | undefined {
  const { plan, request, model, planned, first, reply } = chargeable;
  const { usage, units } = chargeable.call;
  // Nearly every call costs less than its hold. A route that ignores limits is held for more than the request allows.
  const isHoldOfRequest = plan.maxTokens <= (limitTokensOf(request) ?? plan.maxTokens);
  if (usage === undefined || (isHoldOfRequest && costNanos <= plan.maxNanos)) return undefined;
  const { units: held, maxImages = held?.images } = request.text;
  const facts = plausibleFacts({
    ...{ request, model, route: planned?.route, features: first?.features },
    ...{ inputTokens: plan.inputTokens, maxTokens: plan.maxTokens },
    textBytes: deliveredOf(reply).textBytes,
  });
  const tokens = isPlausible(usage, facts) ? usage : chargeablePart(usage, facts);
  if (units === undefined || held === undefined) {
    return tokens === usage ? undefined : { usage: tokens, units };
  }
  const images = atMost(units.images, maxImages);
  const seconds = atMost(units.seconds, held.seconds && 2 * held.seconds);
  const characters = atMost(units.characters, held.characters);
  const isSame =
    tokens === usage &&
    images === units.images &&
    seconds === units.seconds &&
    characters === units.characters;
  return isSame ? undefined : { usage: tokens, units: { ...units, images, seconds, characters } };
}

function atMost(made: number | undefined, max: number | undefined): number | undefined {
  return made === undefined || max === undefined ? made : Math.min(made, max);
}

/** Counts and reports what a vendor's implausible figures would have charged beyond the request. */
function reportLoss<Out extends Chunk>(chargeable: Chargeable<Out>): void {
  const { call, planned, reply, deps } = chargeable;
  const { usage } = deliveredOf(reply);
  const { vendor, start, implausibleNanos } = call;
  if (implausibleNanos <= 0n) return;
  reportImplausible(deps, {
    id: { callId: start.id },
    vendor,
    model: planned?.route.model,
    usage,
    lossNanos: implausibleNanos,
  });
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
