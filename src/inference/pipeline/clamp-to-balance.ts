import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";

/**
 * The usage as far as `nanos` pay for it: with fewer tokens of output where it costs more. What was read is
 * never less.
 *
 * @param cost what a usage costs: more tokens never cost less
 */
export function clampToBalance(usage: Usage, nanos: bigint, cost: (usage: Usage) => bigint): Usage {
  const withOutput = (outputTokens: number): Usage => ({
    ...usage,
    outputTokens,
    reasoningTokens: Math.min(usage.reasoningTokens, outputTokens),
  });
  if (cost(usage) <= nanos) return usage;
  let paid = 0;
  let dear = usage.outputTokens;
  while (dear - paid > 1) {
    const middle = Math.floor((paid + dear) / 2);
    if (cost(withOutput(middle)) <= nanos) paid = middle;
    else dear = middle;
  }
  return withOutput(paid);
}
