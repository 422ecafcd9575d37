/** The names of Anthropic's messages, and what each can cost (R-TXT-13). */
import type { ToolRules } from "../features/billed-features.ts";
import { classed } from "../features/member-class.ts";

/**
 * The members of a request. Some are headers in the SDK: `betas`, `user_profile_id` and
 * `workspace_id`.
 */
export const messagesMembers = {
  ...classed(
    "free",
    `
    max_tokens messages metadata model output_config output_format stop_sequences stream system
    thinking tool_choice tools user_profile_id workspace_id
    `,
  ),
  ...classed(
    "refused",
    `
    anthropic_beta betas billing_policy compaction context_management fallbacks inference_geo
    mcp_servers
    `,
  ),
  ...classed("stored object", "container diagnostics fallback_credit_token resumption thread"),
  ...classed("tiers.priority", "service_tier"),
  ...classed("tiers.fast", "speed"),
  ...classed("cache_write_1h", "cache_control"),
} as const;

/** The members below them. */
export const messagesNested = {
  ...classed(
    "free",
    `
    active allowed_callers allowed_domains allowed_tools block_binding blocked_domains
    budget_tokens caching caller citations cited_text city clear_at clear_at_least
    clear_tool_inputs client_tool_results close_tab configs content context country
    cursor_position data default_config defer_loading definition description
    disable_parallel_tool_use display display_height_px display_number display_width_px
    document_index document_title double_click download_id eager_input_streaming edits effort
    enable_zoom enabled encrypted_content encrypted_index encrypted_stdout end_block_index
    end_char_index end_page_number error error_code error_message exclude_tools file_type
    file_upload find form_input format from get_page_text hold_key hover id input input_examples
    input_schema instructions is_error is_file_update javascript_exec keep key left_click
    left_click_drag left_mouse_down left_mouse_up lines list_tabs max_characters
    max_content_tokens max_tokens max_uses media_type middle_click mode mouse_move name navigate
    new_lines new_start new_tab num_lines old_lines old_start output_config oversized_image
    page_age path prefix_mismatch_behavior properties read_console read_network read_page region
    remaining required response_inclusion retrieved_at return_code right_click role schema
    screenshot scroll scroll_to search_result_index server_name server_tool_results signature
    size_bytes source speed start_block_index start_char_index start_line start_page_number
    state_changes stderr stdout stop_reason strict switch_tab tab_id tabs task_budget text
    thinking timezone title to tool tool_changes tool_configuration tool_id tool_name
    tool_references tool_use_id tools toolset_name total total_lines transformations
    triple_click type url url_sources use_cache user_id user_input user_location value version
    wait zoom
    `,
  ),
  ...classed(
    "refused",
    `
    authorization_token bill_to mcp_server_name model pause_after_compaction trigger
    `,
  ),
  ...classed("stored object", "file_id previous_message_id skill_id skills token"),
  ...classed("cache_write_1h", "cache_control ttl"),
} as const;

/** The types of blocks, sources and settings. */
export const messagesTypes = {
  ...classed(
    "free",
    `
    adaptive advisor_redacted_result advisor_result advisor_tool_result
    advisor_tool_result_error all anthropic any approximate auto base64
    bash_code_execution_output bash_code_execution_result bash_code_execution_tool_result
    bash_code_execution_tool_result_error between_tools browser_state char_location
    clear_thinking_20251015 clear_tool_uses_20250919 code_execution_output code_execution_result
    code_execution_tool_result code_execution_tool_result_error compaction content
    content_block_location direct disabled document download_completed download_failed
    download_started enabled encrypted_code_execution_result ephemeral except fallback image
    input_tokens json_schema mcp_tool_listing mcp_tool_reference mcp_tool_result mcp_tool_use
    mcp_toolset_reference none object only page_location redacted_thinking search_result
    search_result_location server_tool_use tab_opened text
    text_editor_code_execution_create_result text_editor_code_execution_str_replace_result
    text_editor_code_execution_tool_result text_editor_code_execution_tool_result_error
    text_editor_code_execution_view_result thinking thinking_turns tokens tool tool_addition
    tool_definition tool_reference tool_removal tool_result tool_search_tool_result
    tool_search_tool_result_error tool_search_tool_search_result tool_use tool_uses url
    web_fetch_result web_fetch_tool_result web_fetch_tool_result_error web_search_result
    web_search_result_location web_search_tool_result web_search_tool_result_error
    `,
  ),
  ...classed("refused", "billing_policy compact_20260112 summarize"),
  ...classed("stored object", "container_upload continue create file"),
} as const;

/** The tools. */
export const messagesTools = {
  // The caller runs all of these but the search among its own tools, which costs tokens only.
  free: [
    "custom",
    "(?:bash|text_editor|memory|computer)_\\d+",
    "tool_search_tool_(?:regex|bm25)(?:_\\d+)?",
  ],
  billed: [
    [/^web_search_/, "tools.web_search"],
    [/^web_fetch_/, "tools.web_fetch"],
    [/^code_execution_/, "tools.code_execution"],
  ],
  // An advisor is another model.
  refused: [
    "advisor_20260301",
    "browser_toolset_20260801",
    "computer_toolset_20260801",
    "mcp_toolset",
  ],
} as const satisfies ToolRules;

/** The figures of a usage. */
export const messagesUsage = {
  ...classed(
    "free",
    `
    cache_creation fallback_credit inference_geo iterations model output_tokens_details reason
    remove_to_redeem server_tool_use service_tier speed status type
    `,
  ),
  ...classed("input", "input_tokens"),
  ...classed("cached_input", "cache_read_input_tokens"),
  ...classed("cache_write", "cache_creation_input_tokens ephemeral_5m_input_tokens"),
  ...classed("cache_write_1h", "ephemeral_1h_input_tokens"),
  ...classed("output", "output_tokens thinking_tokens"),
  ...classed("tools.web_search", "web_search_requests"),
  ...classed("tools.web_fetch", "web_fetch_requests"),
} as const;

/** The headers of a request; those that are refused are not sent. */
export const messagesHeaders = {
  ...classed("free", "accept anthropic-version anthropic-beta"),
  ...classed("refused", "anthropic-user-profile-id anthropic-workspace-id"),
} as const;

/**
 * The values of `anthropic-beta`. Most of them only allow members, blocks and tools that the guard
 * checks.
 */
export const messagesBetas = {
  ...classed(
    "free",
    `
    advanced-tool-use-2025-11-20 advisor-tool-2026-03-01 cache-diagnosis-2026-04-07
    code-execution-2025-05-22 code-execution-2025-08-25 code-execution-web-tools-2026-02-09
    compact-2026-01-12 compact-2026-09-04 computer-use-2024-10-22 computer-use-2025-01-24
    computer-use-2025-11-24 context-management-2025-06-27 dangerous-tool-use-2026-09-03
    dev-full-thinking-2025-05-14 effort-2025-11-24 extended-cache-ttl-2025-04-11
    fallback-credit-2026-06-01 fallback-credit-2026-07-01 fast-mode-2026-02-01
    files-api-2025-04-14 fine-grained-tool-streaming-2025-05-14 inline-tools-2026-09-15
    interleaved-thinking-2025-05-14 max-tokens-3-5-sonnet-2024-07-15 mcp-client-2025-04-04
    mcp-client-2025-11-20 mcp-client-2026-09-15 mcp-servers-2025-12-04
    message-batches-2024-09-24 message-threads-2026-08-12
    mid-conversation-output-config-2026-07-01 mid-conversation-system-2026-04-07
    mid-conversation-system-clear-at-2026-08-21 mid-conversation-tool-changes-2026-07-01
    model-context-window-exceeded-2025-08-26 output-128k-2025-02-19 output-300k-2026-03-24
    pdfs-2024-09-25 prompt-caching-2024-07-31 server-side-fallback-2026-06-01
    server-side-fallback-2026-07-01 skills-2025-10-02 structured-outputs-2025-11-13
    structured-outputs-2025-12-15 task-budgets-2026-03-13 thinking-binding-controls-2026-08-01
    thinking-display-updates-2026-08-18 thinking-token-count-2026-05-13
    token-counting-2024-11-01 token-efficient-tools-2025-02-19 tool-search-tool-2025-10-19
    tools-2024-04-04 tools-2024-05-16 user-profiles-2026-03-24 user-profiles-2026-08-18
    user-profiles-2026-09-04 web-fetch-2025-09-10 web-search-2025-03-05
    web-search-results-only-2026-11-15
    `,
  ),
  // Claude Code's own, and what it tries out.
  ...classed(
    "free",
    `
    afk-mode-2026-01-31 auto-mode-classifier-2026-07-16 cache-keepalive-2026-09-03
    ccr-byoc-2025-07-29 claude-code-20250219 claude-code-side-query-2026-09-29
    context-hint-2026-04-09 environments-2025-11-01 oauth-2025-04-20 per-turn-control-2026-07-01
    program-use-case-ids-2026-09-17 prompt-caching-evict-2026-05-12
    prompt-caching-scope-2026-01-05 redact-thinking-2026-02-12 resumption-2026-10-08
    thinking-resumption-2026-07-17 timing-2026-09-09 tool-provenance-2026-10-26
    `,
  ),
  // Inputs above 200,000 tokens cost twice as much once this is sent.
  ...classed("tiers", "context-1m-2025-08-07"),
  // Other APIs than messages, which act for the operator's organization.
  ...classed(
    "refused",
    `
    admin-user-sign-out-2026-10-08 agent-memory-2026-07-22 analytics-usage-cost-2026-08-24
    ce-claude-code-managed-settings-2026-10-06 ce-plugins-2026-09-01
    ce-user-management-2026-07-13 dreaming-2026-04-21 experimental-claude-tag-2026-10-21
    managed-agents-2026-04-01 mcp-tunnels-2026-06-22 spend-limit-reads-2026-09-26
    telemetry-destinations-2026-08-11 user-profiles-billing-2026-10-01 webhooks-2026-10-07
    `,
  ),
} as const;
