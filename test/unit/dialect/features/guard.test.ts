/**
 * Requests that must not use the operator's key: other models than the allowed and priced one, more
 * expensive service, and objects that the vendor stores for other customers (R-VND-3).
 */
import { describe, expect, it } from "vitest";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { applyEdits, readOutline } from "../../../../src/dialect/body-members.ts";
import type { Guard } from "../../../../src/dialect/features/guard.ts";
import { gemini } from "../../../../src/dialect/gemini/dialect.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

/**
 * The member that is refused, whether the body's outline is known or not; empty if there is none.
 */
function refused(guard: Guard | undefined, body: unknown, isVerified = true): string {
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const searched = paramOf(() => guard?.(bytes, { isVerified }));
  const outlined = paramOf(() => guard?.(bytes, { isVerified, outline: readOutline(bytes) }));
  expect(outlined).toBe(searched);
  return outlined;
}

function paramOf(check: () => void): string {
  try {
    check();
    return "";
  } catch (error) {
    if (error instanceof GatewayError) return error.param ?? "?";
    throw error;
  }
}

const file = { type: "file", file: { file_id: "file-1" } };

describe("chat completions", () => {
  it.each([
    ["moderation.model", { moderation: { model: "omni" } }],
    ["service_tier", { service_tier: "priority" }],
    ["service_tier", { service_tier: "next_year" }],
    ["web_search_options", { web_search_options: {} }],
    ["search_parameters", { search_parameters: { mode: "on" } }],
    ["enable_search", { enable_search: true }],
    ["plugins", { plugins: [{ id: "web" }] }],
    ["modalities[1]", { modalities: ["text", "audio"] }],
    ["audio", { audio: { voice: "alloy", format: "wav" } }],
    ["tools[0].type", { tools: [{ type: "web_search" }] }],
    ["tools[0].type", { tools: [{ type: "builtin_function", function: { name: "$web_search" } }] }],
    ["messages[1].content[0].file.file_id", { messages: [{}, { content: [file] }] }],
    ["tools[0].googleSearch", { tools: [{ googleSearch: {} }] }],
    [
      "tools[1].googleSearch",
      { tools: [{}, { type: "function", function: { name: "f" }, googleSearch: {} }] },
    ],
    ["tools[0].web_search", { tools: [{ name: "s", web_search: { enable: true } }] }],
    ["enable_search", { extra_body: { enable_search: true } }],
    ["compound_custom", { compound_custom: { tools: { enabled_tools: ["web_search"] } } }],
    ["agent_id", { agent_id: "agent_1" }],
    ["web_search", { web_search: { enable: true } }],
    ["enable_enhancement", { enable_enhancement: true }],
    ["mcp_servers", { mcp_servers: [{ url: "https://a.test" }] }],
    ["deferred", { deferred: true }],
    ["preset", { preset: "deep-research" }],
    ["preset", { extra_body: { preset: "deep-research" } }],
    ["tools[0].type", { extra_body: { tools: [{ type: "web_search" }] } }],
    ["service_tier", { extra_body: { service_tier: "priority" } }],
    ["speed", { extra_body: { speed: "fast" } }],
    ["audio", { extra_body: { audio: { voice: "alloy" } } }],
    ["moderation.model", { extra_body: { moderation: { model: "omni" } } }],
    ["enable_search", { extra_body: { extra_body: { enable_search: true } } }],
    ["extra_body.Service_Tier", { extra_body: { Service_Tier: "priority" } }],
    ["extra_body.model", { extra_body: { model: "dearer" } }],
    ["extra_body.models", { extra_body: { models: ["dearer"] } }],
    ["extra_body.max_tokens", { extra_body: { max_tokens: 100_000 } }],
    ["extra_body.n", { extra_body: { n: 8 } }],
    [
      "extra_body.google.cached_content",
      { extra_body: { google: { cached_content: "cachedContents/1" } } },
    ],
    ["speed", { speed: "fast" }],
    ["inference_geo", { inference_geo: "us" }],
    [
      "messages[0].content[0].cache_control.ttl",
      { messages: [{ content: [{ type: "text", cache_control: { ttl: "1h" } }] }] },
    ],
  ])("a chat request is refused for its %s", (param, body) =>
    expect(refused(chatCompletions.guard, body)).toBe(param),
  );

  it("has nothing against the rest", () => {
    const schema = { properties: { file_id: { type: "string" }, moderation: {} } };
    const tools = [{ type: "function", function: { name: "f", parameters: schema } }];
    const harmless = {
      service_tier: "flex",
      moderation: null,
      tools,
      metadata: { file_id: "x" },
      modalities: ["text"],
      audio: null,
      enable_search: false,
      web_search_options: null,
      extra_body: { top_k: 5, google: { thinking_config: { include_thoughts: true } } },
      mcp_servers: [],
      plugins: [],
      deferred: false,
      web_search: false,
      messages: [{ content: [{ type: "text", cache_control: { type: "ephemeral", ttl: "5m" } }] }],
    };
    expect(refused(chatCompletions.guard, harmless)).toBe("");
  });
});

describe("messages", () => {
  const source = { type: "file", file_id: "file_1" };
  it.each([
    ["fallbacks", { fallbacks: [{ model: "claude-opus-5" }] }],
    ["fallbacks", { fallbacks: "default" }],
    ["fallbacks", '{"fall\\u0062acks":"default"}'],
    [
      "messages[0].content[0].source.file_id",
      `{"messages":[{"content":[{"type":"document","source":{"type":"file","file\\u005fid":"f"}}]}]}`,
    ],
    ["tools[0].model", '{"tools":[{"type":"\\u0061dvisor_20260301","model":"x"}]}'],
    [
      "context_management.edits[1].type",
      {
        context_management: {
          edits: [{ type: "clear_tool_uses_20250919" }, { type: "compact_20260112" }],
        },
      },
    ],
    ["speed", { speed: "fast" }],
    ["thread", { thread: { type: "continue", previous_message_id: "msg_1" } }],
    ["speed", { speed: "next_year" }],
    ["service_tier", { service_tier: "priority" }],
    ["inference_geo", { inference_geo: "us" }],
    ["mcp_servers", { mcp_servers: [{ type: "url", url: "https://a.test" }] }],
    ["tools[0].type", { tools: [{ type: "web_search_20250305", max_uses: 3 }] }],
    ["tools[0].type", { tools: [{ type: "web_fetch_20250910" }] }],
    ["tools[0].type", { tools: [{ type: "code_execution_20250825" }] }],
    ["tools[1].type", { tools: [{ name: "f" }, { type: "next_year" }] }],
    ["cache_control.ttl", { cache_control: { type: "ephemeral", ttl: "1h" } }],
    ["system[0].cache_control.ttl", { system: [{ cache_control: { ttl: "1h" } }] }],
    ["tools[0].cache_control.ttl", { tools: [{ name: "f", cache_control: { ttl: "1h" } }] }],
    [
      "messages[0].content[0].content[0].cache_control.ttl",
      { messages: [{ content: [{ content: [{ cache_control: { ttl: "1h" } }] }] }] },
    ],
    ["plugins", { plugins: [{ id: "web" }] }],
    ["preset", { preset: "deep-research" }],
    ["container", { container: "container_1" }],
    ["container.id", { container: { id: "container_1", skills: [] } }],
    ["tools[0].model", { tools: [{ type: "advisor_20260301", name: "a", model: "x" }] }],
    ["resumption.token", { resumption: { type: "enabled", token: "t" } }],
    ["anthropic_beta", { anthropic_beta: ["next-year-2027-01-01"] }],
    ["betas", { betas: ["next-year-2027-01-01"] }],
    ["compaction", { compaction: { type: "summarize" } }],
    ["billing_policy", { billing_policy: { type: "billing_policy", bill_to: "user_profile" } }],
    ["fallback_credit_token", { fallback_credit_token: "t" }],
    ["fallback_credit_token", { fallback_credit_token: { token: "t" } }],
    ["diagnostics.previous_message_id", { diagnostics: { previous_message_id: "msg_1" } }],
    [
      "container.skills[0].skill_id",
      { container: { skills: [{ type: "custom", skill_id: "s" }] } },
    ],
    [
      "messages[0].content[0].content[0].source.file_id",
      {
        messages: [{ content: [{ type: "tool_result", content: [{ type: "document", source }] }] }],
      },
    ],
    [
      "messages[0].content[0].file_id",
      { messages: [{ content: [{ type: "container_upload", file_id: "file_1" }] }] },
    ],
  ])("a messages request is refused for its %s", (param, body) =>
    expect(refused(messages.guard, body)).toBe(param),
  );

  const added = (definition: object) => ({
    type: "tool_addition",
    tool: { type: "tool_definition", definition },
  });
  const inline = ".tool.definition";
  const places: readonly (readonly [string, (block: object) => object])[] = [
    ["messages[0].content[0]", (block) => ({ messages: [{ role: "system", content: [block] }] })],
    ["system[0]", (block) => ({ system: [block] })],
    [
      "messages[0].content[0].tool_changes[0]",
      (block) => ({ messages: [{ content: [{ type: "compaction", tool_changes: [block] }] }] }),
    ],
    [
      "messages[0].content[0].content[0]",
      (block) => ({ messages: [{ content: [{ type: "tool_result", content: [block] }] }] }),
    ],
    ["messages[0].content[0][0]", (block) => ({ messages: [{ content: [[block]] }] })],
  ];
  it.each(
    places.flatMap(([path, within]) => [
      [`${path}${inline}.type`, within(added({ type: "web_search_20260318", max_uses: 100 }))],
      [`${path}${inline}.type`, within(added({ type: "code_execution_20260521" }))],
      [`${path}${inline}.type`, within(added({ type: "mcp_toolset", mcp_server_name: "m" }))],
      [`${path}${inline}.model`, within(added({ type: "advisor_20260301", model: "dearer" }))],
      [
        `${path}.tool.type`,
        within({ type: "tool_addition", tool: { type: "web_fetch_20260318" } }),
      ],
      [`${path}.tools[0].type`, within({ tools: [{ type: "web_fetch_20260318" }] })],
      [`${path}.Tool`, within({ type: "tool_addition", tool: {}, Tool: {} })],
      [`${path}.tool.Definition`, within({ tool: { type: "tool_definition", Definition: {} } })],
    ]),
  )("a tool inside the conversation is refused for its %s as one of the list is", (param, body) =>
    expect(refused(messages.guard, body)).toBe(param),
  );

  it("an inline tool without a limit gets the limit of the model", () => {
    const tool = { type: "web_search_20260318", name: "web_search" };
    const body = {
      tools: [{ ...tool, max_uses: null }],
      messages: [{ content: "Hi" }, { role: "system", content: [added(tool)] }],
    };
    const bytes = Buffer.from(JSON.stringify(body));
    const features = messages.guard?.(bytes, {
      isVerified: true,
      hasPrice: (unit) => unit === "tools.web_search",
      maxToolCalls: 3,
    });
    expect(features).toMatchObject({ webSearches: 6 });
    const limited = { max_uses: 3, ...tool };
    expect(JSON.parse(Buffer.concat(applyEdits(bytes, features?.edits ?? [])).toString())).toEqual({
      tools: [limited],
      messages: [{ content: "Hi" }, { role: "system", content: [added(limited)] }],
    });
  });

  it("functions and references inside the conversation pass", () => {
    const content = [
      added({
        name: "f",
        input_schema: { type: "object", properties: { tool: { type: "object" } } },
      }),
      added({ type: "bash_20250124", name: "bash" }),
      { type: "tool_addition", tool: { type: "tool_reference", name: "f" } },
      { type: "tool_removal", tool: { type: "mcp_toolset_reference", server_name: "m" } },
      { type: "tool_use", input: { tool: { type: "web_search_20260318" }, Tool: 1 } },
      { type: "tool_result", content: [{ type: "tool_reference", tool_name: "f" }] },
    ];
    const body = { diagnostics: { previous_message_id: null }, messages: [{ content }] };
    expect(refused(messages.guard, body)).toBe("");
  });

  it("has nothing against the rest", () => {
    const made = { type: "code_execution_output", file_id: "file_1" };
    const harmless = {
      speed: "standard",
      service_tier: "standard_only",
      inference_geo: "global",
      mcp_servers: [],
      cache_control: { type: "ephemeral", ttl: "5m" },
      container: { skills: [{ type: "anthropic", skill_id: "pdf", version: "latest" }] },
      tools: [
        { name: "f", input_schema: { properties: { model: {}, container: {}, ttl: {} } } },
        { type: "custom", name: "g", cache_control: { type: "ephemeral" } },
        { type: "bash_20250124", name: "bash" },
        { type: "text_editor_20250728", name: "edit" },
        { type: "computer_20250124", name: "computer" },
        { type: "memory_20250818", name: "memory" },
      ],
      messages: [{ content: [{ type: "code_execution_tool_result", content: [made] }] }],
    };
    expect(refused(messages.guard, harmless)).toBe("");
  });
});

describe("responses", () => {
  const call = { type: "function_call_output", output: [{ type: "input_file", file_id: "f" }] };
  it.each([
    [
      "tools[0].container.memory_limit",
      { tools: [{ type: "code_interpreter", container: { type: "auto", memory_limit: "64g" } }] },
    ],
    ["plugins", { plugins: [{ id: "web" }] }],
    ["preset", { preset: "deep-research" }],
    ["enable_search", { enable_search: true }],
    ["conversation", { conversation: "conv_1" }],
    ["conversation", { conversation: { id: "conv_1" } }],
    ["prompt", { prompt: { id: "pmpt_1" } }],
    ["moderation.model", { moderation: { model: "omni" } }],
    ["service_tier", { service_tier: "ultrafast" }],
    ["multi_agent", { multi_agent: { enabled: true } }],
    ["multi_agent", { multi_agent: {} }],
    ["access_programs.cyber", { access_programs: { cyber: "daybreak_red" } }],
    [
      "tools[0].environment.skills[0].skill_id",
      {
        tools: [
          {
            type: "shell",
            environment: {
              type: "container_auto",
              skills: [{ type: "skill_reference", skill_id: "s" }],
            },
          },
        ],
      },
    ],
    [
      "prompt_cache_options.comparison_response_id",
      { prompt_cache_options: { comparison_response_id: "resp_1" } },
    ],
    ["tools[0].model", { tools: [{ type: "image_generation", model: "gpt-image-2" }] }],
    ["tools[0].type", { tools: [{ type: "image_generation" }] }],
    ["tools[0].type", { tools: [{ type: "web_search" }] }],
    ["tools[0].type", { tools: [{ type: "web_search_preview_2025_03_11" }] }],
    ["tools[0].type", { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }],
    ["tools[0].type", { tools: [{ type: "shell" }] }],
    ["tools[0].type", { tools: [{ type: "shell", environment: { type: "container_auto" } }] }],
    ["tools[0].type", { tools: [{ type: "file_search" }] }],
    ["tools[0].type", { tools: [{ type: "mcp", server_url: "https://a.test" }] }],
    ["tools[1].type", { tools: [{ type: "function" }, { type: "next_year" }] }],
    ["tools[0].type", '{"tools":[{"type" : "mcp"}]}'],
    ["tools[0].type", '{"tools":[{"ty\\u0070e":"mcp"}]}'],
    ["tools[0].tools[0].type", { tools: [{ type: "namespace", tools: [{ type: "mcp" }] }] }],
    ["input[0].tools[0].type", { input: [{ tools: [{ type: "web_search" }] }] }],
    ["modalities[1]", { modalities: ["text", "audio"] }],
    ["audio", { audio: { voice: "alloy" } }],
    ["service_tier", { service_tier: "next_year" }],
    [
      "tools[0].tools[0].vector_store_ids",
      { tools: [{ tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }] },
    ],
    ["tools[0].container", { tools: [{ type: "code_interpreter", container: "cntr_1" }] }],
    ["tools[0].container.file_ids", { tools: [{ container: { type: "auto", file_ids: ["f"] } }] }],
    [
      "tools[0].environment.container_id",
      { tools: [{ environment: { type: "container_reference", container_id: "cntr_1" } }] },
    ],
    ["input[0].tools[0].type", { input: [{ tools: [{ type: "image_generation" }] }] }],
    [
      "input[0].content[0].file_id",
      { input: [{ content: [{ type: "input_image", file_id: "f" }] }] },
    ],
    ["input[0].output[0].file_id", { input: [call] }],
    [
      "input[0].output.file_id",
      { input: [{ output: { type: "computer_screenshot", file_id: "f" } }] },
    ],
  ])("a responses request is refused for its %s", (param, body) =>
    expect(refused(responses.guard, body)).toBe(param),
  );

  it("has nothing against the rest", () => {
    const harmless = {
      conversation: null,
      service_tier: "auto",
      metadata: { conversation: "c" },
      tools: [
        { type: "custom", name: "c", format: { type: "grammar", syntax: "lark", definition: "x" } },
        { type: "shell", environment: { type: "local" } },
        { type: "local_shell" },
        { type: "computer_use_preview", environment: "browser" },
        { type: "namespace", name: "n", tools: [{ type: "function", name: "g" }] },
        { type: "function", name: "f", parameters: { properties: { prompt: {}, model: {} } } },
      ],
      input: [
        { type: "code_interpreter_call", container_id: "cntr_1" },
        { content: [{ type: "output_text", annotations: [{ type: "file_path", file_id: "f" }] }] },
      ],
    };
    expect(refused(responses.guard, harmless)).toBe("");
  });

  it("lets only those refer to items and responses that were looked up", () => {
    const reference = { input: [{ type: "item_reference", id: "msg_1" }] };
    for (const [param, body] of [
      ["input[0].id", reference],
      ["input[0].id", { input: [{ id: "msg_1" }] }],
      ["previous_response_id", { previous_response_id: "resp_1" }],
    ] as const) {
      expect(refused(responses.guard, body, false)).toBe(param);
      expect(refused(responses.guard, body, true)).toBe("");
    }
  });
});

describe("gemini", () => {
  const at = (fileUri: string) => ({ contents: [{ parts: [{ fileData: { fileUri } }] }] });
  const of = (part: object) => ({ contents: [{ parts: [part] }] });
  const google = "generativelanguage.googleapis.com/v1beta/files/abc";
  it.each([
    ["service_tier", { serviceTier: "priority" }],
    ["url", at(`https://${google}`)],
    ["url", at(`https:${google}`)],
    ["url", at(`https:\\\\${google}`)],
    ["url", at(`https:/${google}`)],
    ["url", at(` HTTPS:///x:y@${google}`)],
    ["url", at("https://GENERATIVELANGUAGE.googleapis.com.:443/v1beta/files/abc")],
    ["url", at("https://generative%6Canguage.googleapis.com/v1beta/files/abc")],
    ["url", at("https://generativelanguage\u3002googleapis.com/v1beta/files/abc")],
    ["url", at("ht\ntps://generative\tlanguage.googleapis.com/v1beta/files/abc")],
    ["url", at("https://us-central1-generativelanguage.googleapis.com/v1beta/files/abc")],
    ["url", at("https://generativelanguage.mtls.googleapis.com/v1beta/files/abc")],
    ["url", at(google)],
    ["url", at("files/abc")],
    ["url", at("/v1beta/files/abc")],
    ["url", at("files%2Fabc")],
    ["url", at("gs://bucket/film.mp4")],
    ["url", at("https://proxy.example/v1beta/files/abc")],
    ["url", at("https:PROXY.example:8443/files/abc")],
    ["url", of({ file_data: { file_uri: "files/abc" } })],
    ["url", of({ functionResponse: { parts: [{ fileData: { fileUri: "files/abc" } }] } })],
    ["tools", { tools: [{ fileSearch: { fileSearchStoreNames: ["fileSearchStores/x"] } }] }],
    ["tools", { tools: [{ file_search: {} }] }],
    ["", at("https://example.com/files/abc")],
    ["", at("https://notgenerativelanguage.googleapis.com/files/abc")],
    ["", of({ functionCall: { name: "f", args: { fileUri: "files/abc" } } })],
    ["", of({ functionResponse: { name: "f", response: { fileUri: "files/abc" } } })],
    ["tools", { tools: [{ googleSearch: {} }] }],
    ["tools", { tools: [{ functionDeclarations: [{ name: "f" }] }, { google_search: {} }] }],
    ["tools", { tools: [{ codeExecution: {} }] }],
    ["tools", { tools: [{ urlContext: {} }] }],
    ["tools", { tools: [{ functionDeclarations: [], nextYear: {} }] }],
    ["responseModalities[0]", { generationConfig: { responseModalities: ["AUDIO"] } }],
    ["service_tier", { serviceTier: "next_year" }],
    ["", { serviceTier: "flex", tools: [{ functionDeclarations: [{ name: "googleSearch" }] }] }],
    ["responseModalities[1]", { generationConfig: { responseModalities: ["TEXT", "IMAGE"] } }],
  ])("a Gemini request is refused for %s: %j", (param, body) => {
    const bytes = Buffer.from(JSON.stringify(body));
    const vendorUrl = "https://proxy.example/google";
    const options = { isVerified: true, vendorUrl };
    const outline = readOutline(bytes);
    expect(paramOf(() => gemini.guard?.(bytes, options))).toBe(param);
    expect(paramOf(() => gemini.guard?.(bytes, { ...options, outline }))).toBe(param);
  });
});

it("a cache of an hour passes where the model has a price for it, and only that one", () => {
  const body = (ttl: string) =>
    Buffer.from(JSON.stringify({ system: [{ text: "x", cache_control: { ttl } }] }));
  const check = (ttl: string, unit: string) =>
    paramOf(() => messages.guard?.(body(ttl), { isVerified: true, hasPrice: (of) => of === unit }));
  expect(check("1h", "cache_write_1h")).toBe("");
  expect(check("1h", "another")).toBe("system[0].cache_control.ttl");
  expect(check("5h", "cache_write_1h")).toBe("system[0].cache_control.ttl");
});

it("a cache of twelve hours passes where the model has a price for it, and only that one", () => {
  const marked = (ttl: string) => [
    { content: [{ type: "input_text", text: "x", prompt_cache_breakpoint: { ttl } }] },
  ];
  const check = (guard: Guard | undefined, body: object, unit: string) =>
    paramOf(() =>
      guard?.(Buffer.from(JSON.stringify(body)), {
        isVerified: true,
        hasPrice: (of) => of === unit,
      }),
    );
  const bodies = (ttl: string) =>
    [
      [responses.guard, { prompt_cache_options: { ttl } }, "prompt_cache_options.ttl"],
      [chatCompletions.guard, { prompt_cache_options: { ttl } }, "prompt_cache_options.ttl"],
      [responses.guard, { input: marked(ttl) }, "input[0].content[0].prompt_cache_breakpoint.ttl"],
      [
        chatCompletions.guard,
        { messages: marked(ttl) },
        "messages[0].content[0].prompt_cache_breakpoint.ttl",
      ],
    ] as const;
  for (const [guard, body] of bodies("30m")) expect(check(guard, body, "another")).toBe("");
  for (const [guard, body, path] of bodies("12h")) {
    expect(check(guard, body, "cache_write_12h")).toBe("");
    expect(check(guard, body, "cache_write_1h")).toBe(path);
  }
  for (const [guard, body, path] of bodies("48h"))
    expect(check(guard, body, "cache_write_12h")).toBe(path);
});

it("a refusal names the tool and the price unit that is missing", () => {
  const body = Buffer.from(JSON.stringify({ tools: [{ type: "web_search" }] }));
  const outline = readOutline(body);
  expect(() => responses.guard?.(body, { isVerified: true, outline })).toThrow(
    /"tools\[0\]\.type" asks for the tool "web_search".* no price "tools\.web_search"/,
  );
});

it("a deep body costs no stack", () => {
  const body = `{"file_id":1,"messages":${'[{"content":'.repeat(31)}[]${"}]".repeat(31)}}`;
  expect(refused(messages.guard, body)).toBe("");
});
