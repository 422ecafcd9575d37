/** Refuses requests because of their API key, the same way on every kind of route. */
import { type GatewayError } from "../../core/errors.ts";
import { invalidKey, missingKey, type OnRefusedKey, type RefusedKey } from "../../core/caller.ts";
import type { FacadeOptions } from "./options.ts";

/**
 * Response headers if the URL contains the key: they keep the reply out of caches, and the URL out
 * of referrers.
 */
export const keyInUrlHeaders = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
} as const;

/** Counts a request without a key, and returns its error. */
export function refuseMissingKey(metrics: FacadeOptions["metrics"]): GatewayError {
  metrics.authFailures.inc({ reason: "missing" });
  return missingKey();
}

/** The request with the refused key. */
interface KeyRefusal {
  readonly onRefusedKey: OnRefusedKey | undefined;
  readonly requestId: string;
  /**
   * The path in call records. Undefined if the request does not call a model, and is not recorded.
   */
  readonly path: string | undefined;
}

/**
 * Records a call with a recognised key that is disabled, deleted or expired, for the account that
 * owns the key. The caller gets the same error as for an unknown key (R-AUTH-2).
 *
 * @param request marked as recorded, so that it has no further log line
 * @param found undefined if the key is unknown
 */
export function refuseKey(
  request: { isRecorded: boolean },
  found: RefusedKey | undefined,
  { onRefusedKey, requestId, path }: KeyRefusal,
): GatewayError {
  if (found !== undefined && path !== undefined) {
    onRefusedKey?.(found, { requestId, path });
    request.isRecorded = onRefusedKey !== undefined;
  }
  return invalidKey();
}
