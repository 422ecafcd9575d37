/** Reports an ended call: its log line and its metrics. */
import type { Logger } from "pino";
import { CallEnding, CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { GatewayError } from "../../core/errors.ts";
import { formatUsd, nanosPerUsd } from "../../core/money.ts";
import { countVendorLoss, type Metrics } from "../../observe/metrics.ts";
import type { Call } from "./call.ts";

/** `COMPLETED` → `completed`, by number. */
const endingWords = new Map(
  CallEndingSchema.values.map((value) => [value.number, value.localName.toLowerCase()]),
);

/**
 * Writes the log line of an ended call, and counts it in the metrics. @param isWithheld whether a
 * part of its reply was not delivered, because it could not be paid for. Default false
 */
export function reportCall(
  call: Call,
  { log, metrics }: { log: Logger; metrics: Metrics },
  isWithheld = false,
): void {
  const ending = endingWords.get(call.ending) ?? "";
  const { usage, model, vendor } = call;
  log.info(logFields(call, ending), "call");
  // Without a hold the client may have invented the model's name: it must not become a metric
  // label.
  if (call.heldNanos === undefined) return;
  metrics.callDuration.observe({ model, vendor, ending }, call.durationMs / 1000);
  metrics.overhead.observe(call.overheadMs / 1000);
  if (call.firstByteMs > 0) metrics.firstByte.observe({ model, vendor }, call.firstByteMs / 1000);
  if (call.costNanos > 0n) metrics.charged.inc({ model }, Number(call.costNanos) / nanosOfUsd);
  const { vendorCostNanos = 0n } = call;
  if (vendorCostNanos > 0n) {
    metrics.vendorCost.inc({ model, vendor }, Number(vendorCostNanos) / nanosOfUsd);
    countVendorLoss(metrics, call.costNanos, vendorCostNanos, isWithheld);
  }
  if (call.attempts !== undefined) countAttempts(metrics, call.attempts);
  if (usage !== undefined) {
    metrics.tokens.inc({ model, type: "input" }, usage.inputTokens);
    metrics.tokens.inc({ model, type: "output" }, usage.outputTokens);
  }
}

const nanosOfUsd = Number(nanosPerUsd);

/** Counts what vendors may take for attempts that were abandoned. */
function countAttempts({ platformLoss }: Metrics, attempts: NonNullable<Call["attempts"]>): void {
  for (const { vendor_cost: cost } of attempts) {
    if (cost !== undefined) platformLoss.inc({ reason: "abandoned_attempt" }, Number(cost));
  }
}

/** The members of a call's log line. Those that are undefined are left out. */
function logFields(call: Call, ending: string): object {
  const { requestId, accountId, keyId, path, model, vendor, stream, status, usage } = call;
  return {
    requestId,
    callId: call.id,
    traceId: call.trace?.traceId,
    accountId,
    keyId,
    path,
    model: model.slice(0, 256),
    vendor,
    stream,
    status,
    errorCode: call.errorCode || undefined,
    ending,
    inputTokens: usage?.inputTokens,
    cachedInputTokens: usage?.cachedInputTokens,
    outputTokens: usage?.outputTokens,
    cost: formatUsd(call.costNanos),
    vendorCost: call.vendorCostNanos === undefined ? undefined : formatUsd(call.vendorCostNanos),
    durationMs: Math.round(call.durationMs),
    firstByteMs: Math.round(call.firstByteMs),
  };
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
