/** Detects faults of the operator's DashScope account. */
import { errorMember, textMember } from "../http-vendor.ts";
import { parseJsonReply } from "../task-http.ts";
import type { VendorFault } from "../task.ts";

/** Error codes about the account, whatever their HTTP status. */
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

/**
 * Implements {@link Vendor.faultOf} by error code: an overdue account arrives with status 400, like
 * a wrong parameter.
 */
export function dashscopeFault(_status: number, body: Buffer): VendorFault | undefined {
  const code = dashscopeCode(body);
  if (code === "InvalidParameter" && /^Model not exist\b/i.test(dashscopeMessage(body) ?? "")) {
    return "model";
  }
  return faults.get(code);
}

/**
 * The code of an error, in DashScope's form or the OpenAI-compatible one; empty if the body is no
 * error.
 */
export function dashscopeCode(body: Buffer): string {
  const code = parseJsonReply({ body })?.["code"];
  if (typeof code === "string") return code;
  const error = errorMember(body);
  return error === undefined ? "" : textMember(error, "code");
}

/** The message of an error; `undefined` if the body is no error. */
export function dashscopeMessage(body: Buffer): string | undefined {
  const message = parseJsonReply({ body })?.["message"];
  if (typeof message === "string") return message;
  const error = errorMember(body);
  return error && textMember(error, "message");
}

/** Whether a code means that the content was rejected. */
export function isUnwantedContent(code: string): boolean {
  return /^(DataInspectionFailed|data_inspection_failed|IPInfringementSuspect|FaqRuleBlocked)$/.test(
    code,
  );
}
