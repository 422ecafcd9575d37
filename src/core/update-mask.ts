/** The members that an Update request changes. */
import type { FieldMask } from "@bufbuild/protobuf/wkt";

/**
 * The names of the members to change, as the contract writes them. The contract declares which
 * names a mask may contain.
 */
export function membersOf(mask: FieldMask | undefined): ReadonlySet<string> {
  return new Set(mask?.paths);
}
