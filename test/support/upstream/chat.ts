/** The JSON of chat completions as OpenAI writes it: whole replies and stream chunks. */

/** The usage member. */
export interface WireUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: Readonly<Record<string, number>>;
  readonly completion_tokens_details?: Readonly<Record<string, number>>;
}

/** A tool call that the vendor makes. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

/** The vendor's reply in any form. */
export interface Completion {
  readonly id: string;
  /** Seconds. */
  readonly created: number;
  readonly model: string;
  /** Text in the pieces that a stream sends it in. */
  readonly text: readonly string[];
  /** Pieces of `reasoning_content`, before the text. */
  readonly reasoning: readonly string[];
  /** Pieces of a refusal; none if it is omitted. */
  readonly refusal?: readonly string[];
  readonly toolCalls: readonly ToolCall[];
  readonly finish: string;
  /** Null if the vendor reports none at all. */
  readonly usage: WireUsage | null;
  /** Members unknown to clients, in the reply and in each chunk. */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** The reply as one object. */
export function wholeReply(completion: Completion): Record<string, unknown> {
  const { text, reasoning, toolCalls, refusal = [] } = completion;
  const isSilent = text.length === 0 && (toolCalls.length > 0 || refusal.length > 0);
  const message = {
    role: "assistant",
    content: isSilent ? null : text.join(""),
    refusal: refusal.length > 0 ? refusal.join("") : null,
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join("") }),
    annotations: [],
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(wholeToolCall) }),
  };
  return {
    id: completion.id,
    object: "chat.completion",
    created: completion.created,
    model: completion.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: completion.finish }],
    ...(completion.usage && { usage: completion.usage }),
    service_tier: "default",
    system_fingerprint: "fp_simulated",
    ...completion.extra,
  };
}

/**
 * Returns the reply as stream chunks: role, content, tool calls, finish, and the usage chunk only
 * if requested; every earlier chunk then carries `"usage":null`.
 */
export function streamChunks(
  completion: Completion,
  includeUsage: boolean,
): Array<Record<string, unknown>> {
  const usage = includeUsage && completion.usage !== null;
  const deltas: Array<Record<string, unknown>> = [
    { role: "assistant", content: "", refusal: null },
    ...completion.reasoning.map((piece) => ({ reasoning_content: piece })),
    ...completion.text.map((piece) => ({ content: piece })),
    ...(completion.refusal ?? []).map((piece) => ({ refusal: piece })),
    ...completion.toolCalls.flatMap(toolDeltas),
  ];
  const chunks = deltas.map((delta) => chunk(completion, delta, { finish: null, usage }));
  chunks.push(chunk(completion, {}, { finish: completion.finish, usage }));
  if (usage) {
    chunks.push({ ...envelope(completion), choices: [], usage: completion.usage });
  }
  return chunks;
}

function chunk(
  completion: Completion,
  delta: Record<string, unknown>,
  { finish, usage }: { finish: string | null; usage: boolean },
): Record<string, unknown> {
  return {
    ...envelope(completion),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(usage && { usage: null }),
    obfuscation: "aZ3",
    ...completion.extra,
  };
}

function envelope({ id, created, model }: Completion): Record<string, unknown> {
  return {
    id,
    object: "chat.completion.chunk",
    created,
    model,
    service_tier: "default",
    system_fingerprint: "fp_simulated",
  };
}

function wholeToolCall(call: ToolCall): Record<string, unknown> {
  return {
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  };
}

/** The name first, then the arguments in pieces, all under the call's index. */
function toolDeltas(call: ToolCall, index: number): Array<Record<string, unknown>> {
  const pieces = call.arguments.match(/[\s\S]{1,6}/g) ?? [];
  const first = {
    index,
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: "" },
  };
  return [first, ...pieces.map((piece) => ({ index, function: { arguments: piece } }))].map(
    (delta) => ({ tool_calls: [delta] }),
  );
}
