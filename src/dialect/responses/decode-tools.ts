/** The tools of a responses request, and which of them the model may call. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type OpaquePart,
  OpaquePartSchema,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
  ToolChoiceSchema,
  type ToolName,
  ToolNameSchema,
  ToolSchema,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonReader } from "../reader.ts";

/** Reads `tools`. The tools of a namespace follow each other, each with the namespace's name. */
export function decodeTools(body: JsonReader): Tool[] {
  return body.objects("tools").flatMap((tool) => decodeTool(tool));
}

function decodeTool(tool: JsonReader): Tool[] {
  if (tool.requiredText("type") !== "namespace") return [plainTool(tool)];
  const namespace = tool.requiredText("name");
  const namespaceDescription = tool.text("description");
  const tools = tool.objects("tools");
  // An unknown member belongs to no single tool, so it stays with the namespace as a whole.
  if (tools.length === 0 || tool.extras().length > 0) return [opaqueTool(tool)];
  return tools.map((inner) => ({ ...plainTool(inner), namespace, namespaceDescription }));
}

function plainTool(tool: JsonReader): Tool {
  switch (tool.requiredText("type")) {
    case "function": {
      const name = tool.requiredText("name");
      const description = tool.text("description");
      const parametersJson = tool.object("parameters")?.toJson() ?? "";
      const strict = tool.flag("strict");
      const value = { name, description, parametersJson, ...(strict !== undefined && { strict }) };
      return create(ToolSchema, { kind: { case: "function", value }, extras: tool.extras() });
    }
    case "custom": {
      const value = {
        name: tool.requiredText("name"),
        description: tool.text("description"),
        formatJson: tool.object("format")?.toJson() ?? "",
      };
      return create(ToolSchema, { kind: { case: "custom", value }, extras: tool.extras() });
    }
    default:
      return opaqueTool(tool);
  }
}

function opaqueTool(tool: JsonReader): Tool {
  return create(ToolSchema, { kind: { case: "opaque", value: opaqueOf(tool) } });
}

function opaqueOf(reader: JsonReader): OpaquePart {
  return create(OpaquePartSchema, {
    dialect: Dialect.RESPONSES,
    type: reader.requiredText("type"),
    json: reader.toJson(),
  });
}

const modes = {
  auto: ToolChoiceMode.AUTO,
  none: ToolChoiceMode.NONE,
  required: ToolChoiceMode.REQUIRED,
} as const;

const modeWords = ["auto", "none", "required"] as const;

/** Reads `tool_choice`; `undefined` if it is absent. */
export function decodeToolChoice(body: JsonReader): ToolChoice | undefined {
  const value = body.value("tool_choice");
  if (value === undefined) return undefined;
  if (typeof value === "string") {
    const word = body.word("tool_choice", modeWords) ?? "auto";
    return create(ToolChoiceSchema, { mode: modes[word] });
  }
  const choice = body.requiredObject("tool_choice");
  const named = toolName(choice);
  if (named !== undefined) {
    return create(ToolChoiceSchema, { mode: ToolChoiceMode.NAMED, tool: named });
  }
  return allowedTools(choice) ?? create(ToolChoiceSchema, { opaque: opaqueOf(choice) });
}

/** `undefined` if all of them cannot be named. */
function allowedTools(choice: JsonReader): ToolChoice | undefined {
  if (choice.text("type") !== "allowed_tools") return undefined;
  const word = choice.word("mode", ["auto", "required"]) ?? "auto";
  const tools = choice.objects("tools");
  const allowed = tools.map(toolName).filter((name) => name !== undefined);
  if (allowed.length < tools.length || allowed.length === 0 || choice.extras().length > 0) {
    return undefined;
  }
  return create(ToolChoiceSchema, { mode: modes[word], allowed });
}

/** Undefined if it is not a tool of the caller, or has more than a name. */
function toolName(tool: JsonReader): ToolName | undefined {
  const type = tool.text("type");
  if (type !== "function" && type !== "custom") return undefined;
  const name = create(ToolNameSchema, {
    name: tool.requiredText("name"),
    type: type === "custom" ? ToolType.CUSTOM : ToolType.FUNCTION,
  });
  return tool.extras().length > 0 ? undefined : name;
}
