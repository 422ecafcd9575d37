/** OpenAI's rules for responses requests beyond their shape: items that do not match. */
import type { RecordedRequest } from "./exchange.ts";
import { checkStrict, modelRefusal } from "./openai.ts";
import { type Json, object, objects, string } from "./read.ts";
import { checkCompactShape, checkShape } from "./responses-request.ts";
import type { ResponsesStore } from "./responses-store.ts";
import { unseal } from "./seal.ts";
import { invalid } from "./shape.ts";
import type { StyleError } from "./strict.ts";

/** Throws ShapeError, or returns an error, for what OpenAI does not accept. */
export function check(
  { json = {}, url }: RecordedRequest,
  store: ResponsesStore,
): StyleError | undefined {
  if (isCompact(url)) checkCompactShape(json);
  else checkShape(json);
  const refusal = modelRefusal(json.model);
  if (refusal) return refusal;
  if (json["input"] === undefined && json["previous_response_id"] === undefined) {
    return { status: 400, message: "Missing required parameter: 'input'." };
  }
  checkTogether(json);
  checkSchemas(json);
  checkItems(store.conversationOf(json), store);
  return undefined;
}

/** Whether a request is for the endpoint that compacts. */
export function isCompact(url: string): boolean {
  return url.split("?")[0] === "/v1/responses/compact";
}

function checkTogether(json: Json): void {
  if (json["stream_options"] && json["stream"] !== true) {
    invalid(
      ["stream_options"],
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    );
  }
  const tools = objects(json["tools"]);
  const { name } = object(json["tool_choice"]);
  if (name !== undefined && !tools.some((tool) => tool["name"] === name)) {
    invalid(["tool_choice"], `Tool choice '${string(name)}' not found in 'tools' parameter.`);
  }
  if (json["tool_choice"] === "required" && tools.length === 0) {
    invalid(["tool_choice"], "Tool choice 'required' must be specified with 'tools' parameter.");
  }
}

function checkSchemas(json: Json): void {
  const { type, name, schema, strict } = object(object(json["text"])["format"]);
  if (type === "json_schema" && strict !== false) {
    checkStrict(schema, ["text", "format", "schema"], `response_format '${string(name)}'`);
  }
  for (const [at, tool] of objects(json["tools"]).entries()) {
    if (tool["type"] !== "function") continue;
    const path = ["tools", at, "parameters"];
    if (tool["strict"] === true) {
      checkStrict(tool["parameters"], path, `function '${string(tool["name"])}'`);
    }
    const isObjectSchema = object(tool["parameters"])["type"] === "object";
    if (tool["parameters"] != null && !isObjectSchema) {
      invalid(
        path,
        `Invalid schema for function '${string(tool["name"])}': schema must be of type 'object'.`,
      );
    }
  }
}

/** Every call has its output, every output its call, every reasoning what it led to. */
function checkItems(items: readonly Json[], store: ResponsesStore): void {
  const open = new Map<string, string>();
  for (const [at, item] of items.entries()) {
    const path = ["input", at];
    const callId = string(item["call_id"]);
    switch (item["type"]) {
      case "item_reference":
        return invalid(path, `Item with id '${string(item["id"])}' not found.`, "not_found");
      case "function_call":
      case "custom_tool_call":
        open.set(callId, string(item["type"]));
        break;
      case "function_call_output":
      case "custom_tool_call_output": {
        const kind = string(item["type"]).replace("_output", "");
        if (open.get(callId) !== kind) {
          invalid(
            path,
            `No tool call found for ${kind.replaceAll("_", " ")} output with call_id ${callId}.`,
          );
        }
        open.delete(callId);
        break;
      }
      case "reasoning":
        checkReasoning(items, at, store);
        break;
      case "compaction":
        if (unseal(string(item["encrypted_content"]), "compaction") !== undefined) break;
        return invalid(
          [...path, "encrypted_content"],
          "The encrypted content could not be verified.",
          "invalid_encrypted_content",
        );
      case "compaction_trigger":
        if (at === items.length - 1 || items[at + 1]?.["type"] === "compaction") break;
        return invalid(path, "Item 'compaction_trigger' must be the last item of 'input'.");
      default:
        break;
    }
  }
  for (const callId of open.keys()) {
    invalid(["input"], `No tool output found for function call ${callId}.`);
  }
}

function checkReasoning(items: readonly Json[], at: number, store: ResponsesStore): void {
  const item = items[at] ?? {};
  const id = string(item["id"]);
  const path = ["input", at];
  if (typeof item["encrypted_content"] === "string") {
    const opened = unseal(item["encrypted_content"], "responses");
    if (opened === undefined || (id !== "" && opened.id !== id)) {
      invalid(
        [...path, "encrypted_content"],
        `The encrypted content for item ${id} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
        "invalid_encrypted_content",
      );
    }
  } else if (!store.has(id)) {
    invalid(
      path,
      `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`,
    );
  }
  const next = items[at + 1];
  const isLed =
    next !== undefined &&
    (next["role"] === "assistant" || /call$|^reasoning$/.test(string(next["type"])));
  if (!isLed) {
    invalid(
      path,
      `Item '${id}' of type 'reasoning' was provided without its required following item.`,
    );
  }
}
