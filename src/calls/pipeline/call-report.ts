/** Reports an ended call: its log line and its metrics. */
import type { Logger } from "pino";
import { CallEnding, CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { GatewayError } from "../../core/errors.ts";
import { formatUsd, nanosPerUsd } from "../../core/money.ts";
import { writeInfoLine } from "../../observe/log.ts";
import { countVendorLoss, type Metrics } from "../../observe/metrics.ts";
import type { Call } from "./call.ts";

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
