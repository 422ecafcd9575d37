import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { ErrorCode, GatewayError } from "./errors.ts";

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

/**
 * Reads the mask of an Update request: the names of the members to change, as the contract writes them.
 *
 * @param allowed the members that can be changed
 * @throws GatewayError INVALID_REQUEST where none is named, and where one is that cannot be changed
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
