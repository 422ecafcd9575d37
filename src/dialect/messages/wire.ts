/** Ids, service tiers and opaque parts in this style. */
import type { Part, OpaquePart } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { createHash } from "node:crypto";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { ReplyOptions } from "../codec.ts";

/** The reply's id: the vendor's own if it is one of this style. */
export function messageId(id: string, { callId }: ReplyOptions): string {
  return id.startsWith("msg_") ? id : `msg_${callId}`;
}

/** An opaque part of this style as JSON; one of another style is dropped and reported. */
export function clientOpaque(
  { dialect, type, json }: OpaquePart,
  { onDropped }: ReplyOptions,
): string | undefined {
  if (dialect === Dialect.MESSAGES) return json;
  onDropped(type);
  return undefined;
}

/** Decodes a request's service tier. The contract's `default` has two names in this style. */
export function readServiceTier(word: string): string {
  return word === "standard_only" ? "default" : word;
}

/** Encodes a request's service tier; `undefined` if the style has no such tier. */
export function writeServiceTier(tier: string): string | undefined {
  if (tier === "auto") return tier;
  return tier === "default" || tier === "standard" ? "standard_only" : undefined;
}

/** Decodes the tier in a reply's usage: `standard`, `priority`, `batch`. */
export function readServedTier(word: string): string {
  return word === "standard" ? "default" : word;
}

/** Encodes the tier in a reply's usage; `undefined` if the style has no such tier. */
export function writeServedTier(tier: string): string | undefined {
  if (tier === "default" || tier === "auto") return "standard";
  return tier === "standard" || tier === "priority" || tier === "batch" ? tier : undefined;
}

const legal = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Returns a valid call ID: the original or its digest. A call and its result get the same ID,
 * whichever side created it.
 */
export function legalToolId(id: string): string {
  if (legal.test(id)) return id;
  return `toolu_${createHash("sha256").update(id).digest("hex").slice(0, 40)}`;
}

/** Kind of a part's content. */
export type PartKind = Part["kind"];
