/** Tells the log and the metrics what became of a call: one line each. */
import type { Logger } from "pino";
import { CallEnding, CallEndingSchema } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { GatewayError } from "../../errors.ts";
import { writeInfoLine } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import { formatUsd, nanosPerUsd } from "../../money.ts";
import type { Call } from "./call.ts";

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
