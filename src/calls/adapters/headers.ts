/** The headers that pass through the gateway: those named here, and no others. */

import { bodyBytesMax } from "../../core/limits.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import { type BetaRules, checkBetas } from "../../dialect/features/betas.ts";
import type { TextDialect } from "../../dialect/dialect.ts";

type Headers = Readonly<Record<string, string>>;

/** The common members of requests in a wire style. */
export interface WireRequest {
  readonly query: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/**
 * The headers of a vendor's reply that the customer gets. Its rate limits, organization and cookies
 * concern only the operator.
 */
const relayedHeaders: ReadonlySet<string> = new Set([
  "content-type",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
]);

/** Selects the allowed headers. */
function forwarded(headers: Headers, allowed: ReadonlySet<string>): Record<string, string> {
  const forwardedHeaders: Record<string, string> = {};
  for (const name of allowed) {
    const value = headers[name];
    if (value !== undefined) forwardedHeaders[name] = value;
  }
  return forwardedHeaders;
}

/**
 * The headers of a request for a vendor of its style.
 *
 * @throws GatewayError INVALID_REQUEST for a beta without a price, or one that is not known
 */
export function vendorHeaders(
  headers: Headers,
  { forwardedHeaders, betas }: Pick<TextDialect, "forwardedHeaders" | "betas">,
  rules: BetaRules,
): Record<string, string> {
  checkBetas(headers, betas, rules);
  return forwarded(headers, forwardedHeaders);
}

/**
 * The headers of a reply for the client.
 *
 * @param length its length in bytes; undefined if it is streamed
 */
export function replyHeaders(headers: Headers, length: number | undefined): Record<string, string> {
  const relayed = forwarded(headers, relayedHeaders);
  if (length !== undefined) return { ...relayed, "content-length": String(length) };
  // A buffering proxy would delay the stream.
  return { ...relayed, "cache-control": "no-cache", "x-accel-buffering": "no" };
}

const visible = /^[\x21-\x7e]*$/;
const headerText = /^[\x20-\x7e]*$/;

/**
 * Checks what an HTTP parser would refuse, but a caller of the RPC can send.
 *
 * @throws GatewayError INVALID_REQUEST or REQUEST_TOO_LARGE
 */
export function checkRequest({ body, query, headers }: WireRequest): void {
  if (body.length > bodyBytesMax) {
    throw new GatewayError(
      ErrorCode.REQUEST_TOO_LARGE,
      `The body is longer than ${bodyBytesMax} bytes; send less, or refer to large files by URL`,
    );
  }
  if (!visible.test(query))
    throw invalid("query", "The query contains invalid characters: percent-encode them");
  for (const name in headers) {
    if (headerText.test(headers[name] ?? "")) continue;
    throw invalid("headers", "A header has characters that a header cannot have");
  }
}

/**
 * Returns the vendor's ID of a call from any of the headers that vendors use. Empty if there is
 * none.
 */
export function upstreamRequestId(headers: Headers): string {
  return headers["x-request-id"] ?? headers["request-id"] ?? "";
}
