/**
 * The names of OpenAI's responses, and their price classes (R-TXT-13). Their headers are those of
 * chat completions.
 */
import type { ToolRules } from "../features/billed-features.ts";
import { classed } from "../features/member-class.ts";

/** The members of a request. */
export const responsesMembers = {
  ...classed(
    "free",
    `
    background betas context_management image include input instructions max_output_tokens
    max_tool_calls metadata model parallel_tool_calls personality prompt_cache_key prompt_cache_retention
    reasoning safety_identifier store stream stream_options temperature text tool_choice tools
    top_logprobs top_p truncation user
    `,
  ),
  ...classed("refused", "access_programs moderation multi_agent"),
  ...classed("stored object", "conversation previous_response_id prompt"),
  ...classed("tiers.priority", "service_tier"),
  ...classed("cache_write_12h", "prompt_cache_options"),
} as const;

/** The members below them. */
export const responsesNested = {
  ...classed(
    "free",
    `
    acknowledged_safety_checks action actions agent agent_name allowed_callers allowed_domains
    allowed_tools always annotations approval_request_id approve arguments async attributes
    author authorization background button bytes call_id caller caller_id categories city code
    command commands compact_threshold complexity content context context_compression country
    data defer_loading definition description detail diff display_height display_width domain
    domain_secrets effort embedding_weight encrypted_content end_index env environment error
    execution exit_code external_web_access file_data file_url filename filters fingerprint
    format frame_count frame_duration_ms generate_summary headers hybrid_search image_url
    include_obfuscation index input input_fidelity input_image_mask input_schema input_tokens
    key keys logprob logprobs logs max_num_results max_output_length media_type message mode
    moderation moderation_details moderation_stage name namespace network_policy never operation
    outcome output output_compression output_format output_schema output_tokens outputs param
    parameters partial_images path pattern pending_safety_checks phase policy prewarm quality
    queries query ranker ranking_options read_only reason reasoning reasoning_tokens recipient
    refusal region require_approval result results revised_prompt role schema score
    score_threshold scroll_x scroll_y search_content_types search_context_size
    server_description server_label size source sources start_index status stderr stdout strict
    summary svg svg_usage syntax text text_weight timeout_ms timezone title token tool_names
    tools top_logprobs total_tokens type url user user_location value variables verbosity
    version working_directory x y
    `,
  ),
  ...classed(
    "refused",
    `
    connector_id cyber enabled max_concurrent_subagents memory_limit model server_url tunnel_id
    `,
  ),
  // An id names a stored item, if the item has nothing else.
  ...classed(
    "stored object",
    `
    comparison_response_id container container_id file_id file_ids id skill_id skills
    vector_store_ids
    `,
  ),
  ...classed("cache_write_12h", "prompt_cache_breakpoint ttl"),
} as const;

/** The types of items, parts and settings. */
export const responsesTypes = {
  ...classed(
    "free",
    `
    additional_tools agent_message allowed_tools allowlist and apply_patch_call
    apply_patch_call_output approximate base64 click code_interpreter_call compaction
    compaction_trigger computer_call computer_call_output computer_use configuration_update
    container_file_citation create_file custom_tool_call custom_tool_call_output delete_file
    direct disabled double_click drag encrypted_content eq exec exit file_citation file_path
    file_search_call find_in_page function_call function_call_output grammar gt gte http_error
    image image_generation_call in inline input_text json_object json_schema keypress local
    local_shell_call local_shell_call_output logs lt lte mcp_approval_request
    mcp_approval_response mcp_call mcp_list_tools mcp_protocol_error mcp_tool_execution_error
    message move multi_agent_call multi_agent_call_output ne nin open_page or output_text
    program program_output reasoning reasoning_text refusal screenshot scroll search shell_call
    shell_call_output summary_text text timeout tool_search_call tool_search_output type
    update_file url url_citation wait web_search_call
    `,
  ),
  ...classed(
    "stored object",
    `
    computer_screenshot container_reference input_file input_image item_reference
    skill_reference
    `,
  ),
  ...classed("tools.code_execution", "auto container_auto"),
} as const;

/** The tools. */
export const responsesTools = {
  // The caller runs all of these.
  free: [
    "function",
    "custom",
    "namespace",
    "local_shell",
    "apply_patch",
    "tool_search",
    "computer(?:_use)?(?:_preview)?(?:_\\d+)*",
  ],
  billed: [
    [/^web_search/, "tools.web_search"],
    [/^code_interpreter$|^shell$/, "tools.code_execution"],
    [/^file_search$/, "tools.file_search"],
  ],
  // Images come from another model, the others run what no reply counts.
  refused: ["image_generation", "mcp", "programmatic_tool_calling"],
} as const satisfies ToolRules;

/** The figures of a usage. */
export const responsesUsage = {
  ...classed(
    "free",
    `
    cache_write_tokens_details input_tokens_details output_tokens_details total_tokens
    `,
  ),
  ...classed("input", "input_tokens"),
  ...classed("cached_input", "cached_tokens"),
  ...classed("cache_write", "cache_write_tokens ttl_30m_tokens"),
  ...classed("cache_write_12h", "ttl_12h_tokens"),
  ...classed("output", "output_tokens reasoning_tokens"),
} as const;
