/** What a vendor's answer to a request without money of its own means: passed on, or told in our words. */
import { ErrorCode, GatewayError } from "../errors.ts";
import { readRefusal, type Refusal, retryAfterSeconds } from "../inference/upstream-refusal.ts";
import { refusalBytesMax } from "../config/limits.ts";
import type { VendorReply } from "../vendor/vendor.ts";
import type { NativeContext, NativeVendor } from "./context.ts";

/** A reply outside of 2xx, read whole. */
export interface Judged {
  readonly refusal: Refusal;
  readonly body: Buffer;
}

/** Statuses that are about the object that was asked for, which is the customer's own. */
const ownStatuses = new Set([404, 405, 409, 410, 412, 416]);

/** Reads a refusal; tells the operator where it is about the operator's own account (R-ERR-3). */
export async function judge(
  reply: VendorReply,
  { vendor, config }: NativeVendor,
  { metrics, log }: Pick<NativeContext, "metrics" | "log">,
): Promise<Judged> {
  const { status, headers } = reply;
  const body = await reply.body.whole(refusalBytesMax);
  const fault = vendor.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? vendor.retryAfterOf?.(body);
  if (fault === undefined && ownStatuses.has(status)) return { refusal: passed(status), body };
  const refusal = readRefusal({ status, headers, body, fault, retryAfter });
  metrics.countAttempt(config.name, refusal.pass ? "refused" : "failed");
  if (refusal.alarm !== undefined) {
    metrics.upstreamAlarms.inc({ vendor: config.name, reason: refusal.alarm });
    const fields = { vendor: config.name, status, alarm: refusal.alarm };
    log.error(fields, "a vendor refuses the gateway itself: act on its account or route");
  }
  return { refusal, body };
}

function passed(status: number): Refusal {
  const code = status === 404 ? ErrorCode.NOT_FOUND : ErrorCode.INVALID_REQUEST;
  const error = new GatewayError(code, "The vendor refused the request", { status });
  return { pass: true, error, mayRetry: false, alarm: undefined };
}
