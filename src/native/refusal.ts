/** What a vendor's answer to a request without money of its own means: passed on, or told in our words. */
import { ErrorCode, GatewayError } from "../core/errors.ts";
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

/** Statuses that are about the gateway or the vendor, also where they are told of a customer's own job. */
const foreignStatuses = new Set([401, 402, 403, 407, 429]);

/** With which a vendor may tell that a job has failed. */
function isJobFailure(status: number): boolean {
  return status >= 400 && status <= 500 && !foreignStatuses.has(status);
}

/** What judging needs. */
export interface Judging extends Pick<NativeContext, "metrics" | "log"> {
  /** See {@link NativePassRoute.isJobs}. */
  readonly isJobs?: boolean;
  /** Whether nothing was named that could be missing but the operator's model: that is told of as in calls (R-ERR-4).
   * Default false. */
  readonly isModels?: boolean;
}

/** Reads a refusal; tells the operator where it is about the operator's own account (R-ERR-3). */
export async function judge(
  reply: VendorReply,
  { vendor, config }: NativeVendor,
  { metrics, log, isJobs = false, isModels = false }: Judging,
): Promise<Judged> {
  const { status, headers } = reply;
  const body = await reply.body.whole(refusalBytesMax);
  const fault = vendor.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? vendor.retryAfterOf?.(body);
  const isModel = isModels && status === 404;
  const isOwn = (ownStatuses.has(status) && !isModel) || (isJobs && isJobFailure(status));
  if (fault === undefined && isOwn) return { refusal: passed(status), body };
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
