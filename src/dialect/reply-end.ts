/**
 * Reconciles the end that a vendor reports with the reply that came. One rule for all styles. Pure.
 */
import type { Part } from "../../gen/uas/inference/v1/conversation_pb.ts";
import { StopReason } from "../../gen/uas/inference/v1/generate_pb.ts";

/** Content of a reply that affects its end. */
export interface ReplyContents {
  /** Whether it has a call of one of the caller's tools. */
  readonly hasCalls: boolean;
  readonly hasRefusal: boolean;
  /**
   * Whether it has anything that a client can use: text, a refusal, a call, an image, but not
   * reasoning alone.
   */
  readonly hasContent: boolean;
}

/** The contents of a whole reply, or of a stream so far. */
export class SeenContents implements ReplyContents {
  hasCalls = false;
  hasRefusal = false;
  hasContent = false;

  /** @param parts of a whole reply. Default: none, for a stream */
  constructor(parts: readonly Part[] = []) {
    for (const part of parts) this.add(part);
  }

  /** Adds a part that has come or begun. */
  add(part: Part | undefined): void {
    const kind = part?.kind.case;
    if (kind === "toolCall") this.hasCalls = true;
    if (kind === "refusal") this.hasRefusal = true;
    if (kind !== undefined && kind !== "reasoning") this.hasContent = true;
  }
}

/** The message for a client whose reply announces a call and has nothing. */
export const missingCall = "The model announced a tool call and sent none; try again";

/**
 * Why a reply ended. Calls decide: with one, a usual end means that the caller must run it; without
 * one, a reply that announces a call is a text that ended. Otherwise an agent would stop in the
 * middle of its work.
 *
 * @param reported the vendor's reason
 * @returns undefined if the reply announces a call and has no content at all: it is no reply
 */
export function reconciledEnd(
  reported: StopReason,
  { hasCalls, hasRefusal, hasContent }: ReplyContents,
): StopReason | undefined {
  const isAnnounced = reported === StopReason.TOOL_CALLS && !hasCalls;
  if (isAnnounced && !hasContent) return undefined;
  const reason = isAnnounced ? StopReason.END : reported;
  if (reason !== StopReason.END && reason !== StopReason.UNSPECIFIED) return reason;
  if (hasCalls) return StopReason.TOOL_CALLS;
  return hasRefusal ? StopReason.REFUSAL : reason;
}
