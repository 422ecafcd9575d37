/** What whole and streamed replies to a client have in common. */
import { createHash } from "node:crypto";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { OpaquePart } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { ReplyOptions } from "../codec.ts";

/** The reply's id: the vendor's own where it is one of this style. */
export function messageId(id: string, { callId }: ReplyOptions): string {
  return id.startsWith("msg_") ? id : `msg_${callId}`;
}

/** What only this style knows, as JSON; of another style it is dropped and reported. */
export function clientOpaque(
  { dialect, type, json }: OpaquePart,
  { onDropped }: ReplyOptions,
): string | undefined {
  if (dialect === Dialect.MESSAGES) return json;
  onDropped(type);
  return undefined;
}

/** The classes of service: what the contract calls `default` has two names here. */

/** From a request. */
export function readServiceTier(word: string): string {
  return word === "standard_only" ? "default" : word;
}

/** For a request; `undefined`: the style has no such class. */
export function writeServiceTier(tier: string): string | undefined {
  if (tier === "auto") return tier;
  return tier === "default" || tier === "standard" ? "standard_only" : undefined;
}

/** From a reply's usage: `standard`, `priority`, `batch`. */
export function readServedTier(word: string): string {
  return word === "standard" ? "default" : word;
}

/** For a reply's usage; `undefined`: the style has no such class. */
export function writeServedTier(tier: string): string | undefined {
  if (tier === "default" || tier === "auto") return "standard";
  return tier === "standard" || tier === "priority" || tier === "batch" ? tier : undefined;
}

const legal = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * A call's id as this style allows it: the very one, or a digest of it. The call and its result get the
 * same, whoever made the id.
 */
export function legalToolId(id: string): string {
  if (legal.test(id)) return id;
  return `toolu_${createHash("sha256").update(id).digest("hex").slice(0, 40)}`;
}
