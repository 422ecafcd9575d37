/** Refuses requests because of their API key, the same way on every kind of route. */
import { type GatewayError } from "../../core/errors.ts";
import { invalidKey, missingKey, type OnRefusedKey, type RefusedKey } from "../../core/caller.ts";
import type { FacadeOptions } from "./options.ts";

/** Response headers where the key stands in the URL: they keep the answer out of caches, and the URL out of referrers. */
export const keyInUrlHeaders = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
} as const;

/** Counts a request without a key, and returns its error. */
export function refuseMissingKey(metrics: FacadeOptions["metrics"]): GatewayError {
  metrics.authFailures.inc({ reason: "missing" });
  return missingKey();
}

/** The request whose key is refused. */
interface KeyRefusal {
  readonly onRefusedKey: OnRefusedKey | undefined;
  readonly requestId: string;
  /** As call records name it; `undefined`: the request is no call to a model, and is not recorded. */
  readonly path: string | undefined;
}

/**
 * Records a call with a recognised but disabled, deleted or expired key for the account that owns it. The caller gets
 * the same error as for an unknown key (R-AUTH-2).
 *
 * @param request marked as recorded where a record is kept
 * @param found `undefined`: the key is unknown
 */
export function refuseKey(
  request: { isRecorded: boolean },
  found: RefusedKey | undefined,
  { onRefusedKey, requestId, path }: KeyRefusal,
): GatewayError {
  if (found !== undefined && path !== undefined) {
    request.isRecorded = onRefusedKey?.(found, { requestId, path }) ?? false;
  }
  return invalidKey();
}
