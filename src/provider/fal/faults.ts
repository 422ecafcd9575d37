/** Reads fal's errors about the operator's account and about requests. */
import { parseJsonReply } from "../task-http.ts";
import type { VendorFault } from "../task.ts";

/** Implements {@link Vendor.faultOf}: an account without money is locked, which comes with 403. */
export function falFault(status: number, body: Buffer): VendorFault | undefined {
  const detail = falDetail(body) ?? "";
  if (
    status < 500 &&
    /\b(?:exhausted balance|top up your balance|insufficient balance)\b/i.test(detail)
  ) {
    return "money";
  }
  return undefined;
}

/**
 * Returns the message of an error: one text, or one for each member of the input. Undefined if the
 * body is not an error of fal.
 */
export function falDetail(body: Buffer): string | undefined {
  const detail = parseJsonReply({ body })?.["detail"];
  if (typeof detail === "string") return detail;
  if (!Array.isArray(detail)) return undefined;
  const said = detail.map((each) =>
    typeof each === "object" && each !== null && !Array.isArray(each) ? each["msg"] : undefined,
  );
  return said.filter((each) => typeof each === "string").join("; ");
}

/** Whether fal refuses the content. */
export function isFalContent(body: Buffer): boolean {
  return body.includes('"content_policy_violation"');
}
