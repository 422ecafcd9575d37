/** Tells failures before a request was sent from all others. Pure. */
import type { HttpFailure } from "../http/failure.ts";

/** No connection can have been made. Others, such as EHOSTUNREACH or ETIMEDOUT, can break one in use. */
const unsentCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/** Whether it is certain that nothing of the request went out: then nothing runs at the vendor. */
export function isUnsent({ kind, cause }: HttpFailure): boolean {
  if (kind !== "connect" && kind !== "connect_timeout") return false;
  return cause instanceof Error && "code" in cause && unsentCodes.has(String(cause.code));
}
