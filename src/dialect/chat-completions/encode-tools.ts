/** Tools and the choice among them, as a vendor gets them. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Conversation,
  type CustomTool,
  type FunctionTool,
  type OpaquePart,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
  type ToolName,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import type { EncodeContext } from "./encode-context.ts";
import { customFormat } from "../tools/custom-tools.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { strictFor } from "../tools/strict-schema.ts";
import { toolNameFor } from "../tools/tool-names.ts";

/** Names tools for this style. */
export const chatToolName = toolNameFor({ charsMax: 64, dots: false });

type Wire = Record<string, unknown>;

/**
 * The members `tools`, `tool_choice`, `parallel_tool_calls` and `web_search_options` of a body.
 *
 * @throws GatewayError INVALID_REQUEST for a tool of another style
 */
export function encodeTools(conversation: Conversation, context: EncodeContext): Wire {
  const { toolChoice: choice, parallelToolCalls } = conversation;
  const members: Wire = {};
  const tools: (Wire | JsonText)[] = [];
  for (const tool of chosen(conversation, context)) {
    const search = webSearch(tool);
    if (search === undefined) tools.push(encodeTool(tool, context));
    else members["web_search_options"] = search;
  }
  if (tools.length > 0) members["tools"] = tools;
  // Vendors refuse a choice if there is nothing to choose from.
  if (tools.length > 0 || context.isOwn) {
    const encoded = choice && encodeChoice(choice, conversation.tools, context);
    if (encoded !== undefined) members["tool_choice"] = encoded;
    if (parallelToolCalls !== undefined) members["parallel_tool_calls"] = parallelToolCalls;
  }
  return members;
}

/** Returns the allowed tools. Few vendors accept the form that lists them in the choice. */
function chosen({ tools, toolChoice }: Conversation, { isOwn }: EncodeContext): readonly Tool[] {
  const allowed = toolChoice?.allowed ?? [];
  if (isOwn || allowed.length === 0) return tools;
  const names = new Set(allowed.map(({ name }) => name));
  return tools.filter(({ kind }) => kind.case === "opaque" || names.has(kind.value?.name ?? ""));
}

function webSearch({ kind }: Tool): JsonText | undefined {
  if (kind.case !== "opaque" || !isOwnOpaque(kind.value)) return undefined;
  if (kind.value.type !== "web_search_options") return undefined;
  return new JsonText(kind.value.json);
}

function encodeTool(tool: Tool, context: EncodeContext): Wire | JsonText {
  const encoded = encodeKind(tool, context);
  if (tool.cacheHint) context.drop("cache_hint");
  if (tool.namespaceDescription !== "") context.drop("tools.namespace_description");
  // A tool of a vendor has all its members.
  context.writeExtras(encoded instanceof JsonText ? {} : encoded, tool.extras);
  return encoded;
}

function encodeKind({ kind, namespace }: Tool, context: EncodeContext): Wire | JsonText {
  switch (kind.case) {
    case "function":
      return { type: "function", function: encodeFunction(kind.value, namespace, context) };
    case "custom":
      return { type: "custom", custom: encodeCustom(kind.value, namespace, context) };
    case "opaque":
      if (isOwnOpaque(kind.value)) return context.json(kind.value.json, "tools");
      throw invalid(
        "tools",
        `The model's vendor has no tool "${kind.value.type}"; leave it out, or use a model that has it`,
      );
    case undefined:
    default:
      throw invalid("tools", "A tool is empty; say what it is");
  }
}

function encodeFunction(tool: FunctionTool, namespace: string, context: EncodeContext): Wire {
  const { name, description, parametersJson } = tool;
  const { source, isOwn } = context;
  const strict = strictFor({ strict: tool.strict, schemaJson: parametersJson, source }, () =>
    context.drop("tools.strict"),
  );
  return {
    name: chatToolName({ name, namespace }),
    ...(description && { description }),
    ...(parametersJson && { parameters: context.json(parametersJson, "tools.parameters_json") }),
    // Not every vendor takes a function without a schema.
    ...(!parametersJson && !isOwn && { parameters: { type: "object", properties: {} } }),
    ...(strict !== undefined && { strict }),
  };
}

function encodeCustom(tool: CustomTool, namespace: string, context: EncodeContext): Wire {
  const { name, description, formatJson } = tool;
  const format = context.isOwn ? formatJson : customFormat(formatJson, "nested");
  return {
    name: chatToolName({ name, namespace }),
    ...(description && { description }),
    ...(format && { format: context.json(format, "tools.format_json") }),
  };
}

function encodeChoice(choice: ToolChoice, tools: readonly Tool[], context: EncodeContext): unknown {
  if (choice.opaque !== undefined) {
    if (isOwnOpaque(choice.opaque)) return context.json(choice.opaque.json, "tool_choice");
    throw invalid(
      "tool_choice",
      `The model's vendor does not support the tool choice "${choice.opaque.type}"; use "auto" or a function's name`,
    );
  }
  const mode = modeWord(choice, tools);
  if (choice.allowed.length === 0 || !context.isOwn) return mode;
  const namespaces = namespacesOf(tools);
  const allowed = choice.allowed.map((name) => namedTool(name, namespaces));
  return { type: "allowed_tools", allowed_tools: { mode, tools: allowed } };
}

function modeWord({ mode, tool }: ToolChoice, tools: readonly Tool[]): unknown {
  switch (mode) {
    case ToolChoiceMode.AUTO:
      return "auto";
    case ToolChoiceMode.NONE:
      return "none";
    case ToolChoiceMode.REQUIRED:
      return "required";
    case ToolChoiceMode.NAMED:
      if (tool === undefined) throw invalid("tool_choice", "The tool choice has no tool: name one");
      return namedTool(tool, namespacesOf(tools));
    case ToolChoiceMode.UNSPECIFIED:
    default:
      return undefined;
  }
}

/** The namespaces of tools by name; of two with one name the first counts. */
function namespacesOf(tools: readonly Tool[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { kind, namespace } of tools.toReversed()) {
    if (kind.case !== "opaque" && kind.value !== undefined) found.set(kind.value.name, namespace);
  }
  return found;
}

function namedTool({ name, type }: ToolName, namespaces: ReadonlyMap<string, string>): Wire {
  const wireName = chatToolName({ name, namespace: namespaces.get(name) ?? "" });
  return type === ToolType.CUSTOM
    ? { type: "custom", custom: { name: wireName } }
    : { type: "function", function: { name: wireName } };
}

function isOwnOpaque({ dialect }: OpaquePart): boolean {
  return dialect === Dialect.CHAT_COMPLETIONS;
}
