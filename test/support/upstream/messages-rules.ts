/** Anthropic's rules for messages requests beyond their shape. */
import type { RecordedRequest } from "./exchange.ts";
import { checkShape } from "./messages-request.ts";
import { checkTurns } from "./messages-turns.ts";
import { type Json, object, objects, string } from "./read.ts";
import { schemaFault } from "./strict-schema.ts";
import { invalid } from "./shape.ts";
import type { StyleError } from "./strict.ts";

/** Throws ShapeError, or returns an error, for what Anthropic does not accept. */
export function check({ json = {}, headers }: RecordedRequest): StyleError | undefined {
  const version = string(headers["anthropic-version"]);
  const { thread } = json as Json;
  checkShape(json, version, headers["anthropic-beta"] !== undefined);
  if (thread !== undefined) {
    return {
      status: 400,
      message: "thread: threads are not available for this model.",
      details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
    };
  }
  if (json.model !== "vendor-model") {
    return { status: 404, message: `model: ${string(json.model)}`, code: "not_found_error" };
  }
  checkThinking(json);
  checkTools(json);
  checkCacheControl(json);
  checkTurns(objects(json.messages), {
    isThinking: object(json["thinking"])["type"] === "enabled",
    isNewest: version === "2026-10-21",
  });
  return undefined;
}

function checkThinking(json: Json): void {
  const { type, budget_tokens: budget } = object(json["thinking"]);
  if (type !== "enabled" && type !== "adaptive") return;
  if (typeof budget === "number" && budget >= Number(json["max_tokens"])) {
    invalid(["max_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`.");
  }
  if (json["temperature"] !== undefined && json["temperature"] !== 1) {
    invalid(["temperature"], "`temperature` may only be set to 1 when thinking is enabled.");
  }
  if (json["top_k"] !== undefined) {
    invalid(["top_k"], "`top_k` must be unset when thinking is enabled.");
  }
  if (Number(json["top_p"] ?? 1) < 0.95) {
    invalid(["top_p"], "`top_p` must be greater than or equal to 0.95 when thinking is enabled.");
  }
  if (/^(any|tool)$/.test(string(object(json["tool_choice"])["type"]))) {
    invalid([], "Thinking may not be enabled when tool_choice forces tool use.");
  }
}

function checkTools(json: Json): void {
  const tools = objects(json["tools"]);
  const names = tools.map((tool) => tool["name"]);
  if (new Set(names).size < names.length) invalid(["tools"], "Tool names must be unique.");
  const choice = object(json["tool_choice"]);
  if (json["tool_choice"] !== undefined && tools.length === 0) {
    invalid(["tool_choice"], "tool_choice may only be specified while providing tools.");
  }
  if (choice["type"] === "tool" && !names.includes(choice["name"])) {
    invalid(["tool_choice"], `Tool '${string(choice["name"])}' not found in provided tools`);
  }
  for (const [at, tool] of tools.entries()) {
    if (tool["strict"] !== true) continue;
    const fault = schemaFault(tool["input_schema"], { allRequired: false });
    if (fault) invalid(["tools", at, "custom", "input_schema"], fault);
  }
  const { schema } = object(object(json["output_config"])["format"]);
  const fault = schema === undefined ? undefined : schemaFault(schema, { allRequired: false });
  if (fault) invalid(["output_config", "format", "schema"], fault);
}

function checkCacheControl(json: Json): void {
  const marked = (blocks: unknown): number =>
    objects(blocks).reduce(
      (sum, block) => sum + (block["cache_control"] ? 1 : 0) + marked(block["content"]),
      0,
    );
  const found = [json["tools"], json["system"], json["messages"]].reduce<number>(
    (sum, blocks) => sum + marked(blocks),
    json["cache_control"] ? 1 : 0,
  );
  if (found > 4) {
    invalid([], `A maximum of 4 blocks with cache_control may be provided. Found ${found}.`);
  }
}
