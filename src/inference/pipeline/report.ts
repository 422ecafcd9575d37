/** Tells the log and the metrics what became of a call: one line each. */
import type { Logger } from "pino";
import { CallEnding, CallEndingSchema } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { GatewayError } from "../../errors.ts";
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
  log.info(
    {
      requestId: call.start.requestId,
      callId: call.start.id,
      accountId: call.start.accountId,
      keyId: call.start.keyId,
      path: call.start.path,
      model: model.slice(0, 256),
      vendor,
      stream: call.stream,
      status: call.status,
      errorCode: call.errorCode || undefined,
      ending,
      inputTokens: usage?.inputTokens,
      cachedInputTokens: usage?.cachedInputTokens,
      outputTokens: usage?.outputTokens,
      cost: formatUsd(call.costNanos),
      vendorCost: call.vendorCostNanos === undefined ? undefined : formatUsd(call.vendorCostNanos),
      durationMs: Math.round(call.durationMs),
      firstByteMs: Math.round(call.firstByteMs),
    },
    "call",
  );
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
