/** Tools and the choice among them, as a request has them. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
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

/**
 * Reads `tools`, the deprecated `functions`, and `web_search_options`. @throws GatewayError
 * INVALID_REQUEST
 */
export function decodeTools(body: JsonReader): Tool[] {
  const tools = body.objects("tools").map(decodeTool);
  for (const legacy of body.objects("functions")) {
    const value = decodeFunction(legacy);
    tools.push(create(ToolSchema, { kind: { case: "function", value }, extras: legacy.extras() }));
  }
  // The vendor's own search: a tool in all but the place where it stands.
  if (body.has("web_search_options")) {
    tools.push(opaqueTool("web_search_options", body.json("web_search_options")));
  }
  return tools;
}

function decodeTool(tool: JsonReader): Tool {
  const type = tool.requiredText("type");
  switch (type) {
    case "function": {
      const value = decodeFunction(tool.requiredObject("function"));
      return create(ToolSchema, { kind: { case: "function", value }, extras: tool.deepExtras() });
    }
    case "custom": {
      const custom = tool.requiredObject("custom");
      const value = {
        name: custom.requiredText("name"),
        description: custom.text("description"),
        formatJson: custom.json("format"),
      };
      return create(ToolSchema, { kind: { case: "custom", value }, extras: tool.deepExtras() });
    }
    default:
      return opaqueTool(type, tool.toJson());
  }
}

function decodeFunction(tool: JsonReader) {
  const strict = tool.flag("strict");
  if (tool.has("parameters") && !tool.isObject("parameters")) {
    throw tool.invalid("must be an object", "parameters");
  }
  return {
    name: tool.requiredText("name"),
    description: tool.text("description"),
    parametersJson: tool.json("parameters"),
    ...(strict !== undefined && { strict }),
  };
}

function opaqueTool(type: string, json: string): Tool {
  const value = { dialect: Dialect.CHAT_COMPLETIONS, type, json };
  return create(ToolSchema, { kind: { case: "opaque", value } });
}

/** Reads `tool_choice`, or the deprecated `function_call`. @throws GatewayError INVALID_REQUEST */
export function decodeToolChoice(body: JsonReader): ToolChoice | undefined {
  if (body.has("function_call") && !body.has("tool_choice")) return decodeFunctionChoice(body);
  if (!body.has("tool_choice")) return undefined;
  if (!body.isObject("tool_choice")) return create(ToolChoiceSchema, { mode: choiceMode(body) });
  const choice = body.requiredObject("tool_choice");
  const type = choice.requiredText("type");
  switch (type) {
    case "function":
    case "custom":
      return create(ToolChoiceSchema, { mode: ToolChoiceMode.NAMED, tool: toolName(choice, type) });
    case "allowed_tools": {
      const allowed = choice.requiredObject("allowed_tools");
      const mode = allowed.word("mode", ["auto", "required"]);
      return create(ToolChoiceSchema, {
        mode: mode === "required" ? ToolChoiceMode.REQUIRED : ToolChoiceMode.AUTO,
        allowed: allowed
          .objects("tools")
          .map((tool) => toolName(tool, tool.word("type", ["function", "custom"]) ?? "function")),
      });
    }
    default: {
      const opaque = { dialect: Dialect.CHAT_COMPLETIONS, type, json: body.json("tool_choice") };
      return create(ToolChoiceSchema, { opaque });
    }
  }
}

function toolName(reader: JsonReader, type: "function" | "custom"): ToolName {
  const name = reader.requiredObject(type).requiredText("name");
  return create(ToolNameSchema, {
    name,
    type: type === "custom" ? ToolType.CUSTOM : ToolType.FUNCTION,
  });
}

const modes: Readonly<Record<string, ToolChoiceMode>> = {
  auto: ToolChoiceMode.AUTO,
  none: ToolChoiceMode.NONE,
  required: ToolChoiceMode.REQUIRED,
};

function choiceMode(body: JsonReader): ToolChoiceMode {
  const word = body.word("tool_choice", ["auto", "none", "required"]);
  return (word && modes[word]) ?? ToolChoiceMode.UNSPECIFIED;
}

function decodeFunctionChoice(body: JsonReader): ToolChoice {
  if (!body.isObject("function_call")) {
    const word = body.word("function_call", ["auto", "none"]);
    return create(ToolChoiceSchema, {
      mode: word === "none" ? ToolChoiceMode.NONE : ToolChoiceMode.AUTO,
    });
  }
  const name = body.requiredObject("function_call").requiredText("name");
  const tool = { name, type: ToolType.FUNCTION };
  return create(ToolChoiceSchema, { mode: ToolChoiceMode.NAMED, tool });
}
