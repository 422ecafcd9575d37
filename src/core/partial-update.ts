import type { FieldMask } from "@bufbuild/protobuf/wkt";

/** Entity tags: whether a client has what it asks for already. */

/**
 * Whether one of the tags of an `if-none-match` header is this one. Weak ones count as strong ones, as HTTP says
 * for reading.
 *
 * @param header `undefined` or null: the client has nothing
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
