import { createHash } from "node:crypto";

const legal = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * A call's id as this style allows it: the very one, or a digest of it. The call and its result get the
 * same, whoever made the id.
 */
export function legalToolId(id: string): string {
  if (legal.test(id)) return id;
  return `toolu_${createHash("sha256").update(id).digest("hex").slice(0, 40)}`;
}
