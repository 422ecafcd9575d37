/** What fal says about the operator's account, and about a request. */
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
 * What an error says: one text, or one for each member of the input; undefined if it is none of
 * fal's.
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

/** Whether it is the content that it does not want. */
export function isFalContent(body: Buffer): boolean {
  return body.includes('"content_policy_violation"');
}
