/** What OpenAI, and those who copy it, say about the operator's account. */
import { errorMember, textMember } from "../http-vendor.ts";
import type { VendorFault } from "../vendor.ts";

/** OpenAI's codes that are about the account, whatever the status they come with. */
const faults: ReadonlyMap<string, VendorFault> = new Map([
  ["insufficient_quota", "money"],
  ["billing_hard_limit_reached", "money"],
  ["billing_not_active", "money"],
  ["account_deactivated", "credential"],
  ["invalid_api_key", "credential"],
  // 403 where the key's project may not use the model, 404 where there is none, 400 at some copies.
  ["model_not_found", "model"],
]);

/** See {@link Vendor.faultOf}: by the error's `code`, and by its `type` where it has none. */
export function openaiFault(_status: number, body: Buffer): VendorFault | undefined {
  const error = errorMember(body);
  if (error === undefined) return undefined;
  return faults.get(textMember(error, "code")) ?? faults.get(textMember(error, "type"));
}
