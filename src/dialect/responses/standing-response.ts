/** A response that is not made yet, or never will be: what its request says of it, and how it stands. */
import type { JsonRecord } from "../json.ts";

/** What is known of a response from its first moment. */
export interface BegunResponse {
  readonly id: string;
  /** The public name of the model. */
  readonly model: string;
  /** In seconds since 1970. */
  readonly created: number;
}

/** The response to a request in the background, as it is answered at once. */
export function begunResponse(
  request: JsonRecord,
  { id, model, created }: BegunResponse,
): JsonRecord {
  const { reasoning, text } = request as Readonly<Record<string, object | undefined>>;
  const given = (name: string, other: unknown): unknown => request[name] ?? other;
  return {
    id,
    object: "response",
    created_at: created,
    status: "queued",
    background: true,
    error: null,
    incomplete_details: null,
    instructions: given("instructions", null),
    max_output_tokens: given("max_output_tokens", null),
    max_tool_calls: given("max_tool_calls", null),
    metadata: given("metadata", {}),
    model,
    output: [],
    parallel_tool_calls: given("parallel_tool_calls", true),
    previous_response_id: given("previous_response_id", null),
    prompt_cache_key: given("prompt_cache_key", null),
    reasoning: { effort: null, summary: null, ...reasoning },
    safety_identifier: given("safety_identifier", null),
    service_tier: given("service_tier", "auto"),
    store: true,
    temperature: given("temperature", 1),
    text: { format: { type: "text" }, ...text },
    tool_choice: given("tool_choice", "auto"),
    tools: given("tools", []),
    top_logprobs: given("top_logprobs", 0),
    top_p: given("top_p", 1),
    truncation: given("truncation", "disabled"),
    usage: null,
  };
}

/** How a response stands that has no output. */
export interface Standing {
  readonly status: string;
  /** Why it failed. Absent: it has not. */
  readonly error?: { readonly code: string; readonly message: string };
}

/** The same response as it stands now. */
export function standingResponse(begun: JsonRecord, { status, error }: Standing): JsonRecord {
  return { ...begun, status, error: error ?? null };
}

/** What was made for a request in the background, as the response that was promised. */
export function finishedResponse(begun: JsonRecord, made: JsonRecord): JsonRecord {
  const { id, created_at, background, previous_response_id, model } = begun;
  return { ...made, id, created_at, background, previous_response_id, model };
}
