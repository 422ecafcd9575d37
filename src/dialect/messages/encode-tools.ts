/** Tools and the choice among them, for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Conversation,
  type CustomTool,
  type FunctionTool,
  type OpaquePart,
  type Tool,
  ToolChoiceMode,
  type ToolName,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import { customDescription, customInputSchema } from "../tools/custom-tools.ts";
import { type JsonBranch, JsonText, type JsonTree } from "../../wire/json/json-tree.ts";
import { changeMembers } from "../../wire/json/source.ts";
import { parseRecord, textAt } from "../../wire/json/value.ts";
import type { EncodeContext } from "./encode-context.ts";
import { toolNameFor } from "../tools/tool-names.ts";
import { dropWebSearch, readWebSearch } from "../web-search.ts";

/** The version that all models with a search support. */
const webSearchType = "web_search_20250305";

/** A tool's name as this style allows it. */
export const wireToolName = toolNameFor({ charsMax: 128, dots: false });

/** The members `tools` and `tool_choice`, as far as there are any. */
export function encodeTools(conversation: Conversation, writer: EncodeContext): JsonBranch {
  const allowed = allowedTools(conversation);
  const tools = allowed.map((tool) => encodeTool(tool, writer));
  if (tools.length === 0 && !writer.isOwn) return {};
  const choice = encodeChoice(conversation, writer);
  return {
    ...(tools.length > 0 && { tools }),
    ...(choice !== undefined && { tool_choice: choice }),
  };
}

/**
 * Returns the tools that the choice allows, because the style cannot list several in the choice.
 */
function allowedTools({ tools, toolChoice }: Conversation): readonly Tool[] {
  const allowed = toolChoice?.allowed ?? [];
  if (allowed.length === 0) return tools;
  const names = new Set(allowed.map(({ name }) => name));
  // Built-in tools of another style cannot be named by a choice.
  const isForeign = ({ kind }: Tool): boolean =>
    kind.case === "opaque" && kind.value.dialect !== Dialect.MESSAGES;
  return tools.filter(
    (tool) => isForeign(tool) || names.has(nameOf(tool)) || names.has(joinedName(tool)),
  );
}

function nameOf({ kind }: Tool): string {
  if (kind.case === "opaque") return textAt(parseRecord(kind.value.json) ?? {}, "name");
  return kind.case === undefined ? "" : kind.value.name;
}

/** Returns the name by which a choice refers to a tool in a namespace. */
function joinedName(tool: Tool): string {
  return `${tool.namespace}__${nameOf(tool)}`;
}

function encodeTool(tool: Tool, writer: EncodeContext): JsonTree {
  const { kind } = tool;
  if (tool.namespaceDescription !== "") writer.drop("tools.namespace_description");
  switch (kind.case) {
    case "function":
      return withMembers(encodeFunction(kind.value, tool, writer), tool, writer);
    case "custom":
      return withMembers(encodeCustom(kind.value, tool), tool, writer);
    case "opaque":
      return encodeOpaque(kind.value, writer);
    case undefined:
    default:
      throw invalid("tools", "A tool is neither a function nor a custom tool");
  }
}

/**
 * Vendors of this style search the web themselves; what else another has built in, they have not.
 */
function encodeOpaque(tool: OpaquePart, writer: EncodeContext): JsonTree {
  const search = tool.dialect === Dialect.MESSAGES ? undefined : readWebSearch(tool);
  if (search === undefined) return writer.opaque(tool, "tools");
  const { allowedDomains, blockedDomains, location } = search;
  dropWebSearch(search, new Set(["location", "usesMax"]), (name) => writer.drop(name));
  const members = {
    type: webSearchType,
    name: "web_search",
    ...(allowedDomains.length > 0 && { allowed_domains: allowedDomains }),
    ...(blockedDomains.length > 0 && { blocked_domains: blockedDomains }),
    ...(location && { user_location: location }),
  };
  return new JsonText(JSON.stringify(members));
}

function withMembers(members: JsonBranch, tool: Tool, writer: EncodeContext): JsonBranch {
  return { ...members, ...writer.cacheControl(tool.cacheHint), ...writer.extras(tool.extras) };
}

function encodeFunction(value: FunctionTool, tool: Tool, writer: EncodeContext): JsonBranch {
  const { name, description, parametersJson, strict } = value;
  // Not to be strict is the rule here.
  const tells = strict === true || (strict === false && writer.isOwn);
  return {
    name: wireToolName({ name, namespace: tool.namespace }),
    ...(description !== "" && { description }),
    input_schema: new JsonText(inputSchema(parametersJson)),
    ...(tells && { strict }),
  };
}

/** The style demands an object schema, also if a function takes nothing. */
function inputSchema(json: string): string {
  if (json === "") return '{"type":"object","properties":{}}';
  const schema = parseRecord(json);
  if (schema === undefined) throw invalid("tools", "A function's parameters must be a JSON Schema");
  if (schema["type"] === "object") return json;
  return changeMembers(json, { type: '"object"' });
}

function encodeCustom(value: CustomTool, { namespace }: Tool): JsonBranch {
  const description = customDescription(value);
  return {
    name: wireToolName({ name: value.name, namespace }),
    ...(description !== "" && { description }),
    input_schema: new JsonText(customInputSchema),
  };
}

function encodeChoice(conversation: Conversation, writer: EncodeContext): JsonTree | undefined {
  const { toolChoice, parallelToolCalls } = conversation;
  if (toolChoice?.opaque !== undefined) return writer.opaque(toolChoice.opaque, "tool_choice");
  const single = parallelToolCalls === false && { disable_parallel_tool_use: true };
  switch (toolChoice?.mode) {
    case ToolChoiceMode.NONE:
      return { type: "none" };
    case ToolChoiceMode.REQUIRED:
      return { type: "any", ...single };
    case ToolChoiceMode.NAMED:
      return { type: "tool", name: namedTool(conversation, toolChoice.tool), ...single };
    case ToolChoiceMode.AUTO:
      return { type: "auto", ...single };
    case ToolChoiceMode.UNSPECIFIED:
    case undefined:
    default:
      // Disabling parallel calls requires a tool choice.
      return single === false ? undefined : { type: "auto", ...single };
  }
}

function namedTool({ tools }: Conversation, named: ToolName | undefined): string {
  if (named === undefined)
    throw invalid("tool_choice", "The tool that must be called is not named");
  const { name } = named;
  const tool = tools.find((each) => nameOf(each) === name || joinedName(each) === name);
  return wireToolName(
    tool === undefined
      ? { name, namespace: "" }
      : { name: nameOf(tool), namespace: tool.namespace },
  );
}
