/**
 * Finds replies that exceed the output limit of their request, from vendors that ignore it
 * (R-MON-12).
 */
import type { Chunk } from "./adapter.ts";
import type { Held } from "./hold.ts";
import type { Opened } from "./open.ts";
import { limitTokensOf } from "./plausible.ts";

/**
 * Output tokens beyond the limit that do not count as an overrun: some vendors count the tokens
 * that end a reply.
 */
const toleranceTokens = 16;

/** No tokenizer has longer tokens, in bytes of text: o200k_base has one of 128 spaces. */
const tokenBytesMax = 128;

/**
 * Counts a reply as exceeding the output limit of its request, or as within it. An overrun is
 * proven by the vendor's own count, or by more text than the limit's tokens can hold. An estimate
 * is no proof: a client could request long lines of dashes (64 bytes a token) and disconnect.
 */
export function markOverrun<Out extends Chunk>({
  call,
  request,
  planned,
  reply,
  deps,
}: Held<Out> & Partial<Pick<Opened<Out>, "planned" | "reply">>): void {
  const limitTokens = limitTokensOf(request);
  if (!limitTokens || planned === undefined || reply === undefined) return;
  if (reply.kind === "refusal") return;
  const { usage: reported, textBytes } = reply.kind === "whole" ? reply.whole : reply.stream;
  const leastTokens = Math.ceil(
    (textBytes + (reply.kind === "stream" ? reply.stream.unreadEventBytes : 0)) / tokenBytesMax,
  );
  // Vendors count reasoning, and predictions that the model rejected, as output outside the limit.
  const { outputTokens: counted = 0, reasoningTokens = 0 } = reported ?? {};
  const rejected = reported?.rejectedPredictionTokens ?? 0;
  const outputTokens = Math.max(counted - reasoningTokens - rejected, leastTokens);
  const { accountId } = call;
  if (outputTokens <= limitTokens + toleranceTokens) {
    return deps.unlimitedRoutes.kept(planned.route, accountId);
  }
  const overrun = { callId: call.id, limitTokens, outputTokens };
  deps.unlimitedRoutes.add(planned.route, accountId, overrun);
}
