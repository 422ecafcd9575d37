/** Reads vendor errors in every form that servers of this style use. */
import { ErrorCode, type SentErrorCode } from "../../core/errors.ts";
import type { VendorError } from "../codec.ts";
import { type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";
import { isOperatorFault } from "../vendor-error.ts";

/** Reads the error of a body or an event; undefined if it contains none. */
export function readVendorError(wire: JsonRecord): VendorError | undefined {
  const error = recordAt(wire, "error") ?? (wire["object"] === "error" ? wire : undefined);
  if (error !== undefined && Object.keys(error).length > 0) {
    return { message: textAt(error, "message") || "no message", code: readCode(error) };
  }
  const text = textAt(wire, "error") || ("choices" in wire ? "" : plainMessage(wire));
  return text === "" ? undefined : { message: text, code: readCode(wire) };
}

/** Errors of servers that do not speak the style, for example proxies in front of the vendor. */
function plainMessage(wire: JsonRecord): string {
  return textAt(wire, "message") || textAt(wire, "detail");
}

function readCode(error: JsonRecord): string {
  const { code } = error;
  if (typeof code === "string" && code !== "") return code;
  return textAt(error, "type") || (typeof code === "number" ? String(code) : "");
}

/** Returns the caller's error code for an error inside a stream. */
export function midStreamCode({ code, message }: VendorError): SentErrorCode {
  if (isOperatorFault({ code, type: "", message })) return ErrorCode.SERVICE_UNAVAILABLE;
  if (/rate.?limit|^429$/i.test(code)) return ErrorCode.RATE_LIMIT_EXCEEDED;
  if (/overload|unavailable|^(?:503|529)$/i.test(code)) return ErrorCode.UPSTREAM_OVERLOADED;
  if (/time.?out|^(?:408|504)$/i.test(code)) return ErrorCode.UPSTREAM_TIMEOUT;
  return ErrorCode.UPSTREAM_ERROR;
}
