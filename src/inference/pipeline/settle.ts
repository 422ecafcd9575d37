/**
 * Settles a call, however it ended: usage, charge, record, ledger; then the log and the metrics. R-MON-8.
 */
import type { Logger } from "pino";
import { CallEnding, CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import { callRecord } from "../../billing/calls/call-record.ts";
import type { GatewayError } from "../../core/errors.ts";
import { writeInfoLine } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import { formatUsd, nanosPerUsd } from "../../core/money.ts";
import type { Estimate } from "../tokens/request-tokens.ts";
import type { Chunk } from "./adapter.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import { clampToKeyLimit, markOverrun } from "./overrun.ts";
import type { Delivery } from "./deliver.ts";
import type { Held } from "./hold.ts";
import type { Connection, Opened, Reply } from "./open.ts";

/** A call as far as it has come: at least admitted. */
export type Reached<Out extends Chunk> = Admitted<Out> &
  Partial<Omit<Opened<Out>, keyof Admitted<Out>>>;

/** A call whose money is held, whether a vendor has answered or not. */
type Chargeable<Out extends Chunk> = Held<Out> & Partial<Pick<Opened<Out>, "planned" | "reply">>;

/** What beside the phases is known of a call at its end. */
export interface Ended {
  readonly connection: Connection;
  readonly delivery: Delivery;
}

/**
 * Charges what was delivered, frees the rest and writes the record. A call that held nothing is recorded only.
 * Resolves when the settlement is durable.
 */
export async function settle<Out extends Chunk>(
  reached: Reached<Out>,
  { connection, delivery }: Ended,
): Promise<void> {
  const { call, request, deps } = reached;
  connection.close();
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
  // What the caller has been told, or the stop of a reply has decided, is what is charged.
  if (monitor?.isUsedUp !== true && !delivery.isCostTold) {
    await chargeAtEnd(reached, connection);
    if (delivery.isWithheld) {
      call.isCharged = false;
      call.costNanos = 0n;
    }
    await clampToKeyLimit(reached);
  }
  markOverrun(reached);
  reportCall(call, deps);
  const { id, accountId, costNanos } = call;
  await deps.ledger.settle({ id, accountId, costNanos, record: callRecord(call) });
}

function isHeld<Out extends Chunk>(reached: Reached<Out>): reached is Reached<Out> & Held<Out> {
  return reached.plan !== undefined;
}

/** Writes on the call what it consumed until its end, and what that costs. */
export async function chargeAtEnd<Out extends Chunk>(
  chargeable: Chargeable<Out>,
  connection: Connection,
): Promise<void> {
  const isInputOwed = chargeable.call.ending === CallEnding.CLIENT_GONE && connection.isAccepted;
  const estimated = await estimate(chargeable, { connection, isInputOwed });
  chargeToDate(chargeable, { estimated, isInputOwed });
}

/** What is charged for where the vendor reported nothing; `undefined`: it did, or nothing is charged. */
async function estimate<Out extends Chunk>(
  { tokens, reply, routes }: Chargeable<Out>,
  { connection, isInputOwed }: { readonly connection: Connection; readonly isInputOwed: boolean },
): Promise<Estimate | undefined> {
  const hasContent = reply !== undefined && reply.kind !== "refusal";
  if (!hasContent && !isInputOwed) return undefined;
  const { usage: reported } = deliveredOf(reply);
  if (reported !== undefined) return undefined;
  const vendorModel = (connection.planned ?? routes[0])?.route.model;
  const body = reply?.kind === "whole" ? reply.body : undefined;
  return tokens.estimate({ reported, vendorModel, reply: body });
}

/**
 * Writes on the call what it consumed so far, and what that costs; may be repeated while it runs. What a vendor takes
 * for a call that its customer has for nothing is still known.
 *
 * @param options `estimated`: the gateway's own figures; default: the size of the request. `isInputOwed`: see
 * {@link Delivered}; default false
 */
export function chargeToDate<Out extends Chunk>(
  { call, request, price, tokens, planned, reply, deps: { pricing } }: Chargeable<Out>,
  {
    estimated,
    isInputOwed = false,
  }: { estimated?: Estimate | undefined; isInputOwed?: boolean } = {},
): void {
  const { usage: reported, textBytes, units, isComplete } = deliveredOf(reply);
  const metered = request.meter({
    reported,
    ...(estimated ?? { inputTokens: reported ? 0 : tokens.usual }),
    textBytes,
    units,
    isWhole: isComplete || call.ending === CallEnding.COMPLETED,
    wantsText: request.text.maxOutputTokens !== 0,
    isInputOwed,
  });
  call.usage = metered.usage;
  call.units = metered.units;
  call.usageSource = metered.source;
  call.isCharged = metered.isCharged && metered.usage !== undefined;
  const usage = metered.usage && { ...metered.usage, ...metered.units };
  call.costNanos = usage && metered.isCharged ? pricing.cost(price, usage, call.discountBp) : 0n;
  call.vendorCostNanos = usage && planned && pricing.vendorCost(planned.route, usage, call.startMs);
}

/** What has come of a reply. */
function deliveredOf<Out extends Chunk>(reply: Reply<Out> | undefined) {
  if (reply?.kind === "stream") return reply.stream;
  if (reply?.kind === "whole") {
    const { usage, textBytes, units } = reply.whole;
    return { usage, textBytes, units, isComplete: true };
  }
  return nothing;
}

const nothing = { usage: undefined, textBytes: 0, units: undefined, isComplete: false } as const;

/* Tells the log and the metrics what became of a call: one line each. */

/** `COMPLETED` → `completed`, by number. */
const endingWords = new Map(
  CallEndingSchema.values.map((value) => [value.number, value.localName.toLowerCase()]),
);

/** Reports a call that has ended. */
export function reportCall(call: Call, { log, metrics }: { log: Logger; metrics: Metrics }): void {
  const ending = endingWords.get(call.ending) ?? "";
  const { usage, model, vendor } = call;
  writeInfoLine(log, lineOf(call, ending));
  // Without a hold the model's name may be the client's invention: it must not become a label.
  if (call.heldNanos === undefined) return;
  const series = metrics.callSeries(model, vendor, ending);
  series.duration.observe(call.durationMs / 1000);
  metrics.overhead.observe(call.overheadMs / 1000);
  if (call.firstByteMs > 0) series.firstByte.observe(call.firstByteMs / 1000);
  if (call.costNanos > 0n) series.charged.inc(Number(call.costNanos) / Number(nanosPerUsd));
  const { vendorCostNanos = 0n } = call;
  if (vendorCostNanos > 0n) series.vendorCost.inc(Number(vendorCostNanos) / Number(nanosPerUsd));
  if (usage !== undefined) {
    series.inputTokens.inc(usage.inputTokens);
    series.outputTokens.inc(usage.outputTokens);
  }
}

/** The members of a call's line in the log. */
function lineOf(call: Call, ending: string): string {
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

/** A text in JSON. Nearly all are plain. */
function json(text: string): string {
  return /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Tells the operator why a call failed: what its client is not told. */
export function explainFailure(call: Call, told: GatewayError, log: Logger): void {
  const { ending, start, vendor } = call;
  const { internal, cause, meaning } = told;
  const fields = { requestId: start.requestId, callId: start.id, vendor, internal, err: cause };
  if (ending === CallEnding.GATEWAY_FAILED) log.error(fields, "a call failed");
  else if (ending === CallEnding.UPSTREAM_FAILED) log.warn(fields, "a vendor failed a call");
  else if (meaning.source === "gateway") log.warn(fields, "a call could not be served");
}

/** Tells the operator that a later request cannot refer to this reply. */
export function explainUnkept({ start }: Call, error: unknown, log: Logger): void {
  const fields = { requestId: start.requestId, callId: start.id, err: error };
  log.warn(fields, "a reply could not be kept");
}
