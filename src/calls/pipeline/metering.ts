/** Decides which usage a call is charged: R-MON-8 as one pure function. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import type { PriceConfig } from "../../config/config.ts";
import { bytesPerToken } from "../../core/limits.ts";
import { type BilledFeatures, toolCallMembers } from "../../dialect/features/billed-features.ts";
import { tokensMax } from "../../dialect/features/usage.ts";
import { estimateTokens } from "../../tokens/estimate.ts";

/** The facts of a reply that ended, completely or not. */
export interface Delivered {
  /** The usage that the vendor reported; undefined if there is none. */
  readonly reported: Usage | undefined;
  /**
   * The gateway's estimate that the reply showed to the client. It is charged unchanged. Absent if
   * there is none.
   */
  readonly told?: Usage | undefined;
  /** The counted or estimated input tokens, used only if the vendor reported nothing. Default 0. */
  readonly inputTokens?: number;
  /** The counted output tokens. Absent if not counted, so they are estimated from `textBytes`. */
  readonly outputTokens?: number | undefined;
  /** Bytes of generated text received. */
  readonly textBytes: number;
  /** Of those, the bytes that came after {@link reported}, which does not count them. Default 0. */
  readonly uncountedTextBytes?: number;
  /** The text of a reply whose client disconnected. Absent if the client did not. */
  readonly stopped?: StoppedText | undefined;
  /** Whether the reply reached its end; else a reported figure may be too low. */
  readonly isComplete: boolean;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage | undefined;
  /** Price of the call. Absent if unknown because only tokens are metered. */
  readonly price?: PriceConfig;
  /**
   * Whether the input is charged even without content, because the vendor reads it for a client
   * that disconnected (R-MON-11). Default false.
   */
  readonly isInputOwed?: boolean;
  /**
   * Whether the request asks for text: some requests only warm the vendor's prompt cache. Default
   * true.
   */
  readonly isTextRequested?: boolean;
}

/** Facts about a text whose client disconnected: its vendor was stopped, or reports no count. */
export interface StoppedText {
  /** Whether the estimate is rather too high than too low. */
  readonly isCautious: boolean;
  /** The pieces of text that the vendor streamed; 0: not counted. */
  readonly pieces: number;
  /** The output token limit of the request; Infinity without a limit. */
  readonly maxTokens: number;
}

/** The usage of a call, and its source. */
export interface Metered {
  readonly usage: Usage | undefined;
  readonly source: UsageSource;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage | undefined;
  /** Whether the usage is charged. */
  readonly isCharged: boolean;
  /**
   * The vendor's own figures, if they cannot be true: `usage` is the part that is charged. Absent
   * if they can.
   */
  readonly implausible?: Usage | undefined;
}

/**
 * Returns the vendor's figures if it reported any, else the gateway's. Text that came after the
 * vendor's figures is estimated and added. A reply without content is free, except in three cases:
 * it has results of tools, a written cache, audio or images; the request asked for no text; its
 * client disconnected.
 */
export function meter(delivery: Delivered): Metered {
  const { reported, inputTokens = 0, textBytes, isComplete, isTextRequested = true } = delivery;
  const { isInputOwed = false, uncountedTextBytes = 0, told, stopped } = delivery;
  if (told !== undefined) return { usage: told, source: UsageSource.ESTIMATED, isCharged: true };
  if (reported !== undefined) {
    // A vendor that sent text but reports 0 output tokens did not count.
    const isCounted = isComplete && reported.outputTokens > 0;
    const delivered = isCounted ? 0 : estimateDelivered(textBytes, stopped);
    const withUncounted = reported.outputTokens + estimateTokens(uncountedTextBytes);
    const outputTokens = Math.min(Math.max(delivered, withUncounted), tokensMax);
    if (reported.outputTokens < outputTokens) {
      const usage = { ...reported, outputTokens };
      return { usage, source: UsageSource.ESTIMATED, isCharged: true };
    }
    const hasNothing = reported.outputTokens === 0 && textBytes === 0;
    const isEmpty = hasNothing && !hasResults(reported, delivery.units);
    const isCharged = !isEmpty || isInputOwed || (isComplete && !isTextRequested);
    return { usage: reported, source: UsageSource.UPSTREAM, isCharged };
  }
  if (textBytes === 0 && !isInputOwed) {
    return { usage: undefined, source: UsageSource.UNSPECIFIED, isCharged: false };
  }
  const usage = create(UsageSchema, {
    inputTokens,
    outputTokens: delivery.outputTokens ?? estimateDelivered(textBytes, stopped),
  });
  return { usage, source: UsageSource.ESTIMATED, isCharged: true };
}

/**
 * Maximum average length of pieces that are counted as one token each. The pieces of nearly all
 * texts are shorter.
 */
const singleTokenBytesMax = 6;

/**
 * Bytes per token if pieces have several: JSON, code and most languages have at least as many with
 * the tokenizers of docs/tokens.md.
 */
const stoppedBytesPerToken = 2.5;

function estimateDelivered(bytes: number, stopped: StoppedText | undefined): number {
  return stopped === undefined ? estimateTokens(bytes) : estimateStopped(bytes, stopped);
}

/**
 * Estimates the tokens of a text whose vendor was stopped by a disconnect. The disconnect keeps the
 * vendor from counting, so a cautious estimate is rather too high: each piece has at least one
 * token, and long pieces have several. It stays within the limit of the request, because some
 * tokens have many more bytes than assumed.
 */
export function estimateStopped(
  bytes: number,
  { isCautious, pieces, maxTokens }: StoppedText,
): number {
  if (!isCautious) return Math.min(estimateTokens(bytes), maxTokens);
  const isTokenEach = bytes <= pieces * singleTokenBytesMax;
  const perToken = isTokenEach ? bytesPerToken : stoppedBytesPerToken;
  return Math.min(Math.max(pieces, Math.ceil(bytes / perToken)), maxTokens);
}

/** Decides the usage of embeddings: the input, once the reply is complete. */
export function meterInput(delivered: Delivered): Metered {
  const { reported, inputTokens = 0, isComplete, isInputOwed = false } = delivered;
  if (reported !== undefined) {
    return { usage: reported, source: UsageSource.UPSTREAM, isCharged: true };
  }
  if (!isComplete && !isInputOwed)
    return { usage: undefined, source: UsageSource.UNSPECIFIED, isCharged: false };
  const usage = create(UsageSchema, { inputTokens });
  return { usage, source: UsageSource.ESTIMATED, isCharged: true };
}

/**
 * Limits a usage to the features that its request allows. The customer does not pay for tools that
 * a vendor runs without a request or above their maximum; unrequested audio counts as text. Images
 * always count as images, because some models make them without a request. Returns the same object
 * if there are no such features, as for nearly every call.
 *
 * @param units tools that were counted in the reply, for vendors whose usage does not have them
 */
export function withinRequest(
  usage: Usage,
  units: UnitUsage | undefined,
  features: BilledFeatures | undefined,
): Usage {
  if (features === undefined && !hasFeatures(usage)) return usage;
  const { unreported = {} } = features ?? {};
  const bounded: Usage = { ...usage };
  for (const member of toolCallMembers) {
    const calls = usage[member] ?? units?.[member] ?? unreported[member] ?? 0;
    bounded[member] = Math.min(calls, features?.[member] ?? 0) || undefined;
  }
  if (features?.hasAudioInput !== true) bounded.audioInputTokens = undefined;
  if (features?.hasAudioOutput !== true) bounded.audioOutputTokens = undefined;
  return bounded;
}

function hasFeatures(usage: Usage): boolean {
  return (
    usage.audioInputTokens !== undefined ||
    usage.audioOutputTokens !== undefined ||
    toolCallMembers.some((member) => usage[member] !== undefined)
  );
}

/**
 * Whether a reply without text has what its vendor bills: results of tools, a written cache, audio,
 * or images.
 */
function hasResults(usage: Usage, units: UnitUsage | undefined): boolean {
  const { cacheWriteTokens, audioOutputTokens, imageOutputTokens } = usage;
  const counts = [cacheWriteTokens, audioOutputTokens, imageOutputTokens, usage.audioInputTokens];
  counts.push(...toolCallMembers.map((member) => usage[member]), ...Object.values(units ?? {}));
  return counts.some((count) => count !== undefined && count > 0);
}

/** Nothing was delivered, and nothing is charged. */
export const nothingMetered: Metered = {
  usage: undefined,
  source: UsageSource.UNSPECIFIED,
  isCharged: false,
};

/** Returns the usage of a request without a reply. */
export function inputOnly(inputTokens: number) {
  return { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 };
}
