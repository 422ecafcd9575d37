/** Reads Google's errors about the operator's account, and its retry delays. */
import { errorMember, objectsMember, textMember } from "../http-vendor.ts";
import type { VendorFault } from "../task.ts";

/** Google's reasons that are about the account, whatever the status they come with. */
const faults: ReadonlyMap<string, VendorFault> = new Map([
  ["API_KEY_INVALID", "credential"],
  ["API_KEY_SERVICE_BLOCKED", "credential"],
  ["API_KEY_IP_ADDRESS_BLOCKED", "credential"],
  ["SERVICE_DISABLED", "credential"],
  ["CONSUMER_SUSPENDED", "credential"],
  ["CONSUMER_INVALID", "credential"],
  ["BILLING_DISABLED", "money"],
]);

/**
 * Implements {@link Vendor.faultOf} by the reason among the error's details. A wrong key arrives
 * with status 400. An account that must enable billing or is in an unsupported country also arrives
 * with 400, as FAILED_PRECONDITION. A spent prepayment arrives with 429, like a rate limit; only
 * the text distinguishes them.
 */
export function geminiFault(_status: number, body: Buffer): VendorFault | undefined {
  const error = errorMember(body);
  if (error === undefined) return undefined;
  for (const detail of objectsMember(error, "details")) {
    const fault = faults.get(textMember(detail, "reason"));
    if (fault !== undefined) return fault;
  }
  const message = textMember(error, "message");
  const status = textMember(error, "status");
  if (/^API key (not valid|expired)\b/.test(message)) return "credential";
  if (status === "FAILED_PRECONDITION" && /\bbilling\b/i.test(message)) return "money";
  if (status === "FAILED_PRECONDITION" && /\blocation is not supported\b/i.test(message)) {
    return "credential";
  }
  const isSpent = /\bcredits? (are|is) depleted\b|\bspend(ing)? (cap|limit)\b/i.test(message);
  return status === "RESOURCE_EXHAUSTED" && isSpent ? "money" : undefined;
}

/**
 * Implements {@link Vendor.retryAfterOf}: the `RetryInfo` among the details, such as
 * `{"retryDelay":"21.5s"}`.
 */
export function geminiRetryAfter(body: Buffer): number | undefined {
  const error = errorMember(body);
  for (const detail of error === undefined ? [] : objectsMember(error, "details")) {
    const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(textMember(detail, "retryDelay")) ?? [];
    if (seconds !== undefined) return Math.min(Math.max(Math.ceil(Number(seconds)), 1), 86_400);
  }
  return undefined;
}
