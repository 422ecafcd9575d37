/** The members that an Update request changes. */
import type { FieldMask } from "@bufbuild/protobuf/wkt";

/** The names of the members to change, as the contract writes them. The contract says which may stand in a mask. */
export function membersOf(mask: FieldMask | undefined): ReadonlySet<string> {
  return new Set(mask?.paths);
}
