import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { ErrorCode, GatewayError } from "./errors.ts";

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

/**
 * Reads the update mask of a request: the members to change, spelled as in the contract.
 *
 * @param allowed the members that can be changed
 * @throws GatewayError INVALID_REQUEST where the mask is empty or names a member that cannot be changed
 */
export function readUpdateMask<Member extends string>(
  mask: FieldMask | undefined,
  allowed: readonly Member[],
): ReadonlySet<Member> {
  const list = allowed.join(", ");
  if (mask === undefined || mask.paths.length === 0) {
    throw badMask(`update_mask is required: name what to change, of ${list}`);
  }
  const members = new Set<Member>();
  for (const path of mask.paths) {
    const member = allowed.find((each) => each === path);
    if (member === undefined) {
      throw badMask(`update_mask names "${path.slice(0, 100)}": what can be changed is ${list}`);
    }
    members.add(member);
  }
  return members;
}

function badMask(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "update_mask" });
}
