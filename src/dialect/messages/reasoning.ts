/** Thinking blocks, and what seals them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Reasoning, ReasoningSchema } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { openSeal, wrapSeal } from "../turns/seal.ts";

type ReasoningInit = MessageInitShape<typeof ReasoningSchema>;

/**
 * A `thinking` block of a client: its own vendor's, or one that {@link clientSignature} wrapped.
 */
export function readThinking(thinking: string, signature: string): ReasoningInit {
  const opened = openSeal(signature);
  if (opened === undefined) {
    if (signature === "") return { text: thinking };
    return { text: thinking, seal: { dialect: Dialect.MESSAGES, signature } };
  }
  const { seal, summaries, text, itemId } = opened;
  // The block shows summaries and text as one; the wrapped seal distinguishes them.
  const isShown = summaries.length === 0 && text === "";
  return { text: isShown ? thinking : text, summaries, itemId, ...(seal && { seal }) };
}

/** A `redacted_thinking` block of a client. */
export function readRedacted(data: string): ReasoningInit {
  const opened = openSeal(data);
  if (opened === undefined) return { seal: { dialect: Dialect.MESSAGES, data } };
  const { seal, summaries, text, itemId } = opened;
  return { text, summaries, itemId, ...(seal && { seal }) };
}

/** Returns the reasoning that a client sees. */
export function shownThinking({ summaries, text }: Pick<Reasoning, "summaries" | "text">): string {
  return [...summaries, text].filter(Boolean).join("\n\n");
}

/**
 * The signature of a client's `thinking` block: the vendor's own, else a wrap. Never empty: the
 * block comes back only if it has one.
 */
export function clientSignature(reasoning: Reasoning): string {
  const { seal, summaries, text, itemId } = reasoning;
  const isOwn = seal?.dialect === Dialect.MESSAGES && seal.data === "";
  if (isOwn && seal.signature !== "" && openSeal(seal.signature) === undefined) {
    return seal.signature;
  }
  return wrapSeal(seal, summaries.length === 0 ? { itemId } : { itemId, summaries, text });
}

/** Whether a client gets it as a `redacted_thinking` block: there is nothing to show. */
export function isRedacted({ seal, summaries, text }: Reasoning): boolean {
  return seal !== undefined && seal.data !== "" && text === "" && summaries.length === 0;
}

/** The data of a client's `redacted_thinking` block: the vendor's own, else a wrap. */
export function clientData({ seal, itemId }: Reasoning): string {
  const isOwn = seal?.dialect === Dialect.MESSAGES && seal.signature === "";
  if (isOwn && openSeal(seal.data) === undefined) return seal.data;
  return wrapSeal(seal, { itemId });
}
