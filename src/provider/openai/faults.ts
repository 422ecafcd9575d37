/** Detects faults of the operator's account at OpenAI and compatible vendors. */
import { errorMember, textMember } from "../http-vendor.ts";
import type { VendorFault } from "../task.ts";

/** OpenAI's codes about the account, whatever their HTTP status. */
const faults: ReadonlyMap<string, VendorFault> = new Map([
  ["insufficient_quota", "money"],
  ["billing_hard_limit_reached", "money"],
  ["billing_not_active", "money"],
  ["account_deactivated", "credential"],
  ["invalid_api_key", "credential"],
  // 403 if the key's project may not use the model, 404 if it does not exist, 400 at some
  // compatible vendors.
  ["model_not_found", "model"],
]);

/** Implements {@link Vendor.faultOf} by the error's `code`, or its `type` if it has none. */
export function openaiFault(_status: number, body: Buffer): VendorFault | undefined {
  const error = errorMember(body);
  if (error === undefined) return undefined;
  return faults.get(textMember(error, "code")) ?? faults.get(textMember(error, "type"));
}
