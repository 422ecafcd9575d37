/** What Alibaba's DashScope says about the operator's account. */
import { errorMember, textMember } from "../http-vendor.ts";
import { jsonOf } from "../task-http.ts";
import type { VendorFault } from "../vendor.ts";

/** Its codes that are about the account, whatever the status they come with. */
const faults: ReadonlyMap<string, VendorFault> = new Map([
  ["InvalidApiKey", "credential"],
  ["invalid_api_key", "credential"],
  ["Workspace.AccessDenied", "credential"],
  ["Arrearage", "money"],
  ["PrepaidBillOverdue", "money"],
  ["PostpaidBillOverdue", "money"],
  ["CommodityNotPurchased", "money"],
  ["AccessDenied.Unpurchased", "money"],
  ["AllocationQuota.FreeTierOnly", "money"],
  ["ModelNotFound", "model"],
  ["model_not_found", "model"],
  ["Model.AccessDenied", "model"],
]);

/** See {@link Vendor.faultOf}: by the code. An account that is overdue comes with 400, as a wrong parameter does. */
export function dashscopeFault(_status: number, body: Buffer): VendorFault | undefined {
  const code = dashscopeCode(body);
  if (code === "InvalidParameter" && /^Model not exist\b/i.test(dashscopeMessage(body) ?? "")) {
    return "model";
  }
  return faults.get(code);
}

/** The code of an error, in its own form or in the one of the compatible interface; empty: it is none. */
export function dashscopeCode(body: Buffer): string {
  const code = jsonOf({ body })?.["code"];
  if (typeof code === "string") return code;
  const error = errorMember(body);
  return error === undefined ? "" : textMember(error, "code");
}

/** What an error says; `undefined`: it is none. */
export function dashscopeMessage(body: Buffer): string | undefined {
  const message = jsonOf({ body })?.["message"];
  if (typeof message === "string") return message;
  const error = errorMember(body);
  return error && textMember(error, "message");
}

/** Whether a code says that it is the content that is not wanted. */
export function isUnwantedContent(code: string): boolean {
  return /^(DataInspectionFailed|data_inspection_failed|IPInfringementSuspect|FaqRuleBlocked)$/.test(
    code,
  );
}
