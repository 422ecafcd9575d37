/**
 * Settles every call, however it ended: usage, charge, record and ledger, then log and metrics (R-MON-8).
 */
import type { Logger } from "pino";
import { CallEnding, CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import { callRecord } from "../../billing/calls/call-record.ts";
import { bytesPerToken } from "../../config/limits.ts";
import type { GatewayError } from "../../core/errors.ts";
import { writeInfoLine } from "../../core/log.ts";
import { countVendorLoss, type Metrics } from "../../core/metrics.ts";
import { formatUsd, nanosPerUsd } from "../../core/money.ts";
import { withinRequest } from "../metering.ts";
import type { Estimate } from "../tokens/request-tokens.ts";
import type { Chunk } from "./adapter.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import { clampToLimits, markOverrun } from "./overrun.ts";
import type { HoldMonitor } from "./hold-monitor.ts";
import type { Held } from "./hold.ts";
import { average } from "../routing/targets.ts";
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
  connection.close();
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
    await chargeAtEnd(reached, connection);
    if (delivery.isWithheld) {
      call.isCharged = false;
      call.costNanos = 0n;
    }
    await clampToLimits(reached);
  }
  markOverrun(reached);
  reportCall(call, deps);
  const { id, accountId, costNanos } = call;
  await deps.ledger.settle({ id, accountId, costNanos, record: callRecord(call) });
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

/** Sets the final usage and cost of a call. */
export async function chargeAtEnd<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  connection: Connection,
): Promise<void> {
  const isInputOwed = chargeable.call.ending === CallEnding.CLIENT_GONE && connection.isAccepted;
  const estimated = await estimate(chargeable, { connection, isInputOwed });
  chargeToDate(chargeable, { estimated, isInputOwed });
}

/** Estimates the usage where the vendor reported none; `undefined`: it did, or nothing is charged. */
async function estimate<Out extends Chunk>(
  { tokens, reply, routes }: Chargeable<Out>,
  { connection, isInputOwed }: { readonly connection: Connection; readonly isInputOwed: boolean },
): Promise<Estimate | undefined> {
  const hasContent = reply !== undefined && reply.kind !== "refusal";
  if (!hasContent && !isInputOwed) return undefined;
  const { usage: reported, estimated } = deliveredOf(reply);
  if (reported !== undefined || estimated !== undefined) return undefined;
  const vendorModel = (connection.planned ?? routes[0])?.route.model;
  const body = reply?.kind === "whole" ? reply.body : undefined;
  return tokens.estimate({ reported, vendorModel, reply: body });
}

/**
 * Updates usage and cost of a call to what it consumed so far; may be repeated while it runs. The vendor's cost is set
 * even where the customer is not charged.
 *
 * @param options `estimated`: the gateway's own figures; default: the size of the request. `isInputOwed`: see
 * {@link Delivered}; default false
 */
export function chargeToDate<Out extends Chunk>(
  { call, request, price, tokens, plan, planned, first, reply, deps: { pricing } }: Chargeable<Out>,
  {
    estimated,
    isInputOwed = false,
  }: { estimated?: Estimate | undefined; isInputOwed?: boolean } = {},
): void {
  const delivered = deliveredOf(reply);
  const { usage: reported, textBytes: allBytes, units, isComplete } = delivered;
  // Whoever disconnects keeps the vendor from counting: the estimate stays within the limit of the request, for some
  // tokens have many more bytes than are assumed.
  const isUncounted = call.ending === CallEnding.CLIENT_GONE && reported === undefined;
  const isBounded = isUncounted && estimated !== undefined && plan.maxTokens > 0;
  const textBytes = isBounded ? Math.min(allBytes, plan.maxTokens * bytesPerToken) : allBytes;
  const metered = request.meter({
    reported,
    told: call.ending === CallEnding.CLIENT_GONE ? undefined : delivered.estimated,
    ...(estimated ?? { inputTokens: reported ? 0 : tokens.typical }),
    textBytes,
    units,
    isComplete: isComplete || call.ending === CallEnding.COMPLETED,
    isTextRequested: request.text.maxOutputTokens !== 0,
    isInputOwed,
  });
  const { usage: used } = metered;
  call.usage = used && withinRequest(used, units, first?.features);
  call.units = metered.units;
  call.usageSource = metered.source;
  call.isCharged = metered.isCharged && used !== undefined;
  const usage = call.usage && { ...call.usage, ...metered.units };
  call.costNanos = usage && metered.isCharged ? pricing.cost(price, usage, call.discountBp) : 0n;
  // The vendor charges all that it ran, asked or not.
  const ran = usage && (call.usage === used ? usage : { ...usage, ...units, ...used });
  call.vendorCostNanos = ran && planned && pricing.vendorCost(planned.route, ran, call.startMs);
}

/** The part of a reply that was delivered. */
function deliveredOf<Out extends Chunk>(reply: Reply<Out> | undefined) {
  if (reply?.kind === "stream") return reply.stream;
  if (reply?.kind === "whole") {
    const { usage, estimated, textBytes, units } = reply.whole;
    return { usage, estimated, textBytes, units, isComplete: true };
  }
  return nothing;
}

const nothing = {
  usage: undefined,
  estimated: undefined,
  textBytes: 0,
  units: undefined,
  isComplete: false,
} as const;

/** `COMPLETED` → `completed`, by number. */
const endingWords = new Map(
  CallEndingSchema.values.map((value) => [value.number, value.localName.toLowerCase()]),
);

/** Writes the log line of an ended call, and counts it in the metrics. */
export function reportCall(call: Call, { log, metrics }: { log: Logger; metrics: Metrics }): void {
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
    countVendorLoss(metrics, call.costNanos, vendorCostNanos);
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
