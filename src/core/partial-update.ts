import type { FieldMask } from "@bufbuild/protobuf/wkt";

/**
 * Whether an `if-none-match` header contains this tag. Weak tags compare equal to strong ones, as HTTP specifies
 * for reads.
 *
 * @param header `undefined` or null where the client has no copy
 */
export function matchesEtag(header: string | null | undefined, etag: string): boolean {
  if (header === null || header === undefined) return false;
  const bare = etag.replace(/^W\//, "");
  return header.split(",").some((each) => {
    const tag = each.trim();
    return tag === "*" || tag.replace(/^W\//, "") === bare;
  });
}

/* Which members an Update request changes. */

/** The names of the members to change, as the contract writes them. The contract says which may stand in a mask. */
export function membersOf(mask: FieldMask | undefined): ReadonlySet<string> {
  return new Set(mask?.paths);
}
