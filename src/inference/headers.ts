/** Which headers pass through the gateway: those named here, and no others. */

type Headers = Readonly<Record<string, string>>;

/** Headers of a vendor's reply that its customer gets to see. Its rate limits, its organization and its
 * cookies are the operator's business. */
const passedDown: ReadonlySet<string> = new Set([
  "content-type",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
]);

/** The client's headers that a vendor gets to see. */
export function forwarded(headers: Headers, allowed: ReadonlySet<string>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of allowed) {
    const value = headers[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

/**
 * The headers that a reply begins with.
 *
 * @param length how many bytes it has; `undefined`: it is streamed.
 */
export function replyHeaders(headers: Headers, length: number | undefined): Record<string, string> {
  const passed = forwarded(headers, passedDown);
  if (length !== undefined) return { ...passed, "content-length": String(length) };
  // Proxies that buffer would hold the stream back.
  return { ...passed, "cache-control": "no-cache", "x-accel-buffering": "no" };
}
