/** Tools and the choice among them of a request. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Extra,
  ExtraSchema,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
  ToolChoiceSchema,
  ToolSchema,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonReader } from "../reader.ts";
import { decodeCacheHint } from "./decode-content.ts";

/** The tools that the model may call. */
export function decodeTools(reader: JsonReader): Tool[] {
  return reader.objects("tools").map(decodeTool);
}

function decodeTool(tool: JsonReader): Tool {
  const type = tool.text("type");
  // Dated ones are the vendor's own: `bash_20250124`, `web_search_20250305` ….
  if (type !== "" && type !== "custom") {
    const value = { dialect: Dialect.MESSAGES, type, json: tool.toJson() };
    return create(ToolSchema, { kind: { case: "opaque", value } });
  }
  const strict = tool.flag("strict");
  const value = {
    name: tool.requiredText("name"),
    description: tool.text("description"),
    parametersJson: tool.requiredObject("input_schema").toJson(),
    ...(strict !== undefined && { strict }),
  };
  const cacheHint = decodeCacheHint(tool);
  return create(ToolSchema, {
    kind: { case: "function", value },
    ...(cacheHint && { cacheHint }),
    extras: tool.extras(),
  });
}

const modes = new Map([
  ["auto", ToolChoiceMode.AUTO],
  ["any", ToolChoiceMode.REQUIRED],
  ["none", ToolChoiceMode.NONE],
]);

/** The allowed tools, and whether parallel calls are allowed. */
interface DecodedToolChoice {
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
}

/** The choice among the tools. What is left over of it goes to `extras`. */
export function decodeToolChoice(reader: JsonReader, extras: Extra[]): DecodedToolChoice {
  const choice = reader.object("tool_choice");
  if (choice === undefined) return {};
  const type = choice.requiredText("type");
  const single = choice.flag("disable_parallel_tool_use") === true;
  const toolChoice = readChoice(choice, type);
  for (const { name, json } of toolChoice.opaque === undefined ? choice.extras() : []) {
    extras.push(create(ExtraSchema, { name: `tool_choice.${name}`, json }));
  }
  // Parallel calls are the default, so only the exception is written.
  return { toolChoice, ...(single && { parallelToolCalls: false }) };
}

function readChoice(choice: JsonReader, type: string): ToolChoice {
  if (type === "tool") {
    const tool = { name: choice.requiredText("name") };
    return create(ToolChoiceSchema, { mode: ToolChoiceMode.NAMED, tool });
  }
  const mode = modes.get(type);
  if (mode !== undefined) return create(ToolChoiceSchema, { mode });
  const opaque = { dialect: Dialect.MESSAGES, type, json: choice.toJson() };
  return create(ToolChoiceSchema, { opaque });
}
