/** Compares entity tags of HTTP. */

/**
 * Whether an `if-none-match` header contains this tag. Weak tags compare equal to strong ones, as
 * HTTP specifies for reads.
 *
 * @param header undefined or null if the client has no copy
 */
export function matchesEtag(header: string | null | undefined, etag: string): boolean {
  if (header === null || header === undefined) return false;
  const bare = etag.replace(/^W\//, "");
  return header.split(",").some((each) => {
    const tag = each.trim();
    return tag === "*" || tag.replace(/^W\//, "") === bare;
  });
}
