/**
 * Classifies a vendor's refusal of a native request: passed on, or replaced by an error of the
 * gateway.
 */
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { readRefusal, type Refusal, retryAfterSeconds } from "../routing/upstream-refusal.ts";
import { refusalBytesMax } from "../core/limits.ts";
import { bufferedBody, type VendorReply } from "../provider/reply.ts";
import type { NativeContext } from "./context.ts";
import type { NativeMount } from "./mount.ts";
import { noSuchObject } from "./store.ts";

/** A reply other than 2xx, read completely. */
export interface ClassifiedRefusal {
  readonly refusal: Refusal;
  readonly body: Buffer;
}

/**
 * Statuses about the requested object, which belongs to the customer, or about the customer's
 * headers and query.
 */
const ownStatuses = new Set([404, 405, 406, 409, 410, 412, 414, 416, 431]);

/** Statuses about the gateway or the vendor, also in replies about a customer's job. */
const foreignStatuses = new Set([401, 402, 403, 407, 429]);

/** Whether a vendor may report the failure of a job with this status. */
function isJobFailureStatus(status: number): boolean {
  return status >= 400 && status <= 500 && !foreignStatuses.has(status);
}

/** Options of {@link classifyRefusal}. */
export interface ClassifyOptions extends Pick<NativeContext, "metrics" | "log"> {
  /** As {@link NativePassRoute.isJobFailure}. Default false. */
  readonly isJobFailure?: boolean;
  /**
   * Whether only the operator's model can be missing: a 404 is then reported as in calls (R-ERR-4).
   * Default false.
   */
  readonly isModels?: boolean;
}

/**
 * Reads and classifies a refusal. Alerts the operator if it concerns the operator's account
 * (R-ERR-3).
 */
export async function classifyRefusal(
  reply: VendorReply,
  { vendor, config, api }: NativeMount,
  { metrics, log, isJobFailure = false, isModels = false }: ClassifyOptions,
): Promise<ClassifiedRefusal> {
  const { status, headers } = reply;
  const body = await reply.body.whole(refusalBytesMax);
  if (api.isMissingObject?.(status, body) === true) return { refusal: missing(), body };
  const fault = vendor.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? vendor.retryAfterOf?.(body);
  const isModel = isModels && status === 404;
  const isOwn =
    (ownStatuses.has(status) && !isModel) || (isJobFailure && isJobFailureStatus(status));
  if (fault === undefined && isOwn) return { refusal: passed(status), body };
  const refusal = readRefusal({ status, headers, body, fault, retryAfter });
  metrics.countAttempt(config.name, refusal.isRelayed ? "refused" : "failed");
  if (refusal.alarm !== undefined) {
    metrics.upstreamAlarms.inc({ vendor: config.name, reason: refusal.alarm });
    const fields = { vendor: config.name, status, alarm: refusal.alarm };
    log.error(
      fields,
      "a vendor refuses the operator's account: check its credential, balance and model name",
    );
  }
  return { refusal, body };
}

/**
 * Forwards a reply, unless it reports that an object no longer exists: a vendor may report that
 * when it refuses a credential.
 *
 * @throws GatewayError NOT_FOUND
 */
export async function checkObjects({ api }: NativeMount, reply: VendorReply): Promise<VendorReply> {
  const { status } = reply;
  if (api.isMissingObject === undefined || (status >= 200 && status < 300)) return reply;
  const body = await reply.body.whole(refusalBytesMax);
  if (api.isMissingObject(status, body)) throw noSuchObject();
  return { ...reply, body: bufferedBody(body) };
}

function missing(): Refusal {
  return { isRelayed: false, error: noSuchObject(), canRetry: false, alarm: undefined };
}

function passed(status: number): Refusal {
  const code = status === 404 ? ErrorCode.NOT_FOUND : ErrorCode.INVALID_REQUEST;
  const error = new GatewayError(code, "The vendor refused the request", { status });
  return { isRelayed: true, error, canRetry: false, alarm: undefined };
}
