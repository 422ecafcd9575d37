/** Tools and their choice as responses have them. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Conversation,
  type FunctionTool,
  type OpaquePart,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
  type ToolName,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import { customFormat } from "../tools/custom-tools.ts";
import type { JsonText } from "../../wire/json/json-tree.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import type { EncodeContext } from "./encode-context.ts";
import { strictFor } from "../tools/strict-schema.ts";
import { dropWebSearch, readWebSearch, refuseDomains, type WebSearch } from "../web-search.ts";

/** Writes `tools`, `tool_choice` and `parallel_tool_calls`, as far as they are there. */
export function encodeTooling(conversation: Conversation, context: EncodeContext): JsonRecord {
  const { tools, toolChoice, parallelToolCalls } = conversation;
  const choice = toolChoice && encodeChoice(toolChoice, context);
  return {
    ...(tools.length > 0 && { tools: encodeTools(tools, context) }),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(parallelToolCalls !== undefined && { parallel_tool_calls: parallelToolCalls }),
  };
}

/** A tool; one of a vendor is as its author wrote it. */
export type WrittenTool = JsonRecord | JsonText;

/** Writes tools; consecutive tools of a namespace are written together inside it. */
export function encodeTools(tools: readonly Tool[], context: EncodeContext): WrittenTool[] {
  const written: WrittenTool[] = [];
  let open: { readonly name: string; readonly tools: WrittenTool[] } | undefined;
  for (const tool of tools) {
    const { namespace, namespaceDescription } = tool;
    const json = encodeTool(tool, context);
    if (namespace === "") {
      open = undefined;
      written.push(json);
      continue;
    }
    if (open?.name !== namespace) {
      open = { name: namespace, tools: [] };
      const description = namespaceDescription;
      written.push({ type: "namespace", name: namespace, description, tools: open.tools });
    }
    open.tools.push(json);
  }
  return written;
}

function encodeTool({ kind, extras, cacheHint }: Tool, context: EncodeContext): WrittenTool {
  if (cacheHint !== undefined) context.drop("cache_hint");
  switch (kind.case) {
    case "function":
      return context.withExtras(functionTool(kind.value, context), extras);
    case "custom": {
      const { name, description, formatJson } = kind.value;
      const format = context.isOwn ? formatJson : customFormat(formatJson, "flat");
      const tool = {
        type: "custom",
        name: context.toolName(name),
        ...(description && { description }),
        ...(format !== "" && { format: context.json(format, "tools.custom.format_json") }),
      };
      return context.withExtras(tool, extras);
    }
    case "opaque":
      return opaqueTool(kind.value, context);
    case undefined:
    default:
      throw invalid("tools", "A tool has no type: send a function or a custom tool");
  }
}

/**
 * Without a word about it, this style makes schemas strict, and optional members with them
 * required.
 */
function functionTool(tool: FunctionTool, context: EncodeContext): JsonRecord {
  const { name, description, parametersJson, strict } = tool;
  const parameters =
    parametersJson === ""
      ? { type: "object", properties: {} }
      : context.json(parametersJson, "tools.function.parameters_json");
  const { source, drop } = context;
  const isStrict = strictFor({ strict, schemaJson: parametersJson, source }, () =>
    drop("tools.strict"),
  );
  return {
    type: "function",
    name: context.toolName(name),
    ...(description && { description }),
    parameters,
    ...(isStrict === undefined && context.isOwn ? {} : { strict: isStrict === true }),
  };
}

function opaqueTool(tool: OpaquePart, context: EncodeContext): WrittenTool {
  if (tool.dialect === Dialect.RESPONSES) return context.json(tool.json, "tools.opaque.json");
  const search = readWebSearch(tool);
  if (search !== undefined) return webSearchTool(search, context);
  throw invalid("tools", `The tool "${tool.type}" is not supported with this model: leave it out`);
}

function webSearchTool(search: WebSearch, context: EncodeContext): JsonRecord {
  const { allowedDomains, location, contextSize } = search;
  refuseDomains(search.blockedDomains, "blocked_domains");
  dropWebSearch(search, new Set(["location", "contextSize"]), context.drop);
  return {
    type: "web_search",
    ...(allowedDomains.length > 0 && { filters: { allowed_domains: allowedDomains } }),
    ...(location && { user_location: location }),
    ...(contextSize && { search_context_size: contextSize }),
  };
}

const words: ReadonlyMap<ToolChoiceMode, string> = new Map([
  [ToolChoiceMode.AUTO, "auto"],
  [ToolChoiceMode.NONE, "none"],
  [ToolChoiceMode.REQUIRED, "required"],
]);

/** Writes a choice of tools; undefined for the default. */
export function encodeChoice(choice: ToolChoice, context: EncodeContext): unknown {
  const { mode, tool, allowed, opaque } = choice;
  if (opaque !== undefined) {
    if (opaque.dialect === Dialect.RESPONSES) return context.json(opaque.json, "tool_choice");
    throw invalid("tool_choice", `"${opaque.type}" is not supported with this model`);
  }
  if (mode === ToolChoiceMode.NAMED) {
    if (tool === undefined) throw invalid("tool_choice", "A named tool choice must name the tool");
    return named(tool, context);
  }
  if (allowed.length === 0 || mode === ToolChoiceMode.NONE) return words.get(mode);
  const isRequired = mode === ToolChoiceMode.REQUIRED;
  return {
    type: "allowed_tools",
    mode: isRequired ? "required" : "auto",
    tools: allowed.map((each) => named(each, context)),
  };
}

function named({ name, type }: ToolName, context: EncodeContext): JsonRecord {
  const isCustom = type === ToolType.CUSTOM;
  return { type: isCustom ? "custom" : "function", name: context.toolName(name) };
}
