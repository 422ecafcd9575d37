/** The names of OpenAI's chat completions, and what each can cost (R-TXT-13). */
import type { ToolRules } from "../features/billed-features.ts";
import { classed } from "../features/member-class.ts";

/** The members of a request. */
export const chatMembers = {
  ...classed(
    "free",
    `
    frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
    max_tokens messages metadata model n parallel_tool_calls prediction presence_penalty
    prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier
    seed stop store stream stream_options temperature tool_choice tools top_logprobs top_p user
    verbosity
    `,
  ),
  ...classed("refused", "moderation"),
  ...classed("tiers.priority", "service_tier"),
  ...classed("audio_output", "audio modalities"),
  ...classed("cache_write_12h", "prompt_cache_options"),
  ...classed("tools.web_search", "web_search_options"),
} as const;

/** The members below them. */
export const chatNested = {
  ...classed(
    "free",
    `
    allowed_tools approximate arguments audio city content country custom data definition
    description detail file file_data filename format function function_call grammar id
    image_url include_obfuscation include_usage input json_schema mode name output parameters
    policy refusal region role schema search_context_size strict syntax text timezone
    tool_call_id tool_calls tools type url user_location
    `,
  ),
  ...classed("refused", "model"),
  ...classed("stored object", "file_id voice"),
  ...classed("audio_input", "input_audio"),
  ...classed("cache_write_12h", "prompt_cache_breakpoint ttl"),
} as const;

/** The types of parts, formats and choices. */
export const chatTypes = {
  ...classed(
    "free",
    `
    allowed_tools approximate content grammar image_url json_object json_schema refusal text
    `,
  ),
  ...classed("stored object", "file"),
  ...classed("audio_input", "input_audio"),
} as const;

/** The tools. */
export const chatTools = {
  free: ["function", "custom"],
  billed: [[/web_search/, "tools.web_search"]],
  refused: [],
} as const satisfies ToolRules;

/** The figures of a usage. */
export const chatUsage = {
  ...classed(
    "free",
    `
    completion_tokens_details prompt_tokens_details total_tokens
    `,
  ),
  ...classed("input", "image_tokens prompt_tokens text_tokens"),
  ...classed("cached_input", "cached_tokens"),
  ...classed("cache_write", "cache_write_tokens"),
  ...classed("audio_input", "audio_tokens"),
  ...classed(
    "output",
    `
    accepted_prediction_tokens completion_tokens reasoning_tokens rejected_prediction_tokens
    `,
  ),
} as const;

/** The headers of a request; those that are refused are not sent. */
export const openaiHeaders = {
  ...classed("free", "accept openai-beta"),
  ...classed("refused", "openai-organization openai-project"),
} as const;

/**
 * The values of `openai-beta`, of all APIs of OpenAI: clients send some of them with every request.
 */
export const openaiBetas = {
  ...classed(
    "free",
    `
    agents=v1 assistants=v1 assistants=v2 chatkit_beta=v1 realtime=v1 responses=experimental
    responses_websockets=2026-02-06
    `,
  ),
  // Neither the number nor the depth of the agents has a limit.
  ...classed("refused", "responses_multi_agent=v1"),
} as const;
