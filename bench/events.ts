/** The events of a stream of chat completions, as OpenAI sends them. */

const common = {
  id: "chatcmpl-bench",
  object: "chat.completion.chunk",
  created: 1_760_000_000,
  model: "vendor-flood",
  service_tier: "default",
  system_fingerprint: "fp_bench",
};

function event(choices: readonly unknown[], usage: unknown = null): string {
  return `data: ${JSON.stringify({ ...common, choices, usage })}\n\n`;
}

function choice(content: unknown, finishReason: string | null): readonly unknown[] {
  return [{ index: 0, delta: content, logprobs: null, finish_reason: finishReason }];
}

const usage = { prompt_tokens: 250, completion_tokens: 2000, total_tokens: 2250 };

/** The text of a chunk that has no time of sending. */
export const noStamp = "0".repeat(16);

/** Text before the content of a chunk. */
export const textMark = '"content":"';

/** The first event. */
export const opening: string = event(choice({ role: "assistant", content: "" }, null));

/** An event with a text. */
export function delta(content: string): string {
  return event(choice({ content }, null));
}

/** The end of every stream. */
export const terminal = "data: [DONE]";

/** The last events. */
export const closing: string = `${event(choice({}, "stop"))}${event([], usage)}${terminal}\n\n`;
