/** Tools and the choice among them, as function declarations. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Conversation,
  type FunctionTool,
  type OpaquePart,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type JsonRecord, parseRecord } from "../json.ts";
import { type EncodeContext, refused } from "./context.ts";
import type { FunctionCallingConfig, GeminiRequest } from "./wire.ts";

/** The tools' part of a request. @throws GatewayError INVALID_REQUEST where Gemini has no such tool */
export function encodeTools(
  { tools, toolChoice, parallelToolCalls }: Conversation,
  context: EncodeContext,
): Pick<GeminiRequest, "tools" | "toolConfig"> {
  // True is what Gemini does; it cannot be told not to.
  if (parallelToolCalls === false) context.drop("parallel_tool_calls");
  const functions: JsonRecord[] = [];
  const own: JsonRecord[] = [];
  for (const tool of tools) {
    if (tool.kind.case === "function") functions.push(declaration(tool, tool.kind.value, context));
    else own.push(ownTool(tool));
  }
  checkNames(functions);
  const offered = isLimited(toolChoice)
    ? functions.filter(({ name }) => toolChoice.allowed.some((each) => each.name === name))
    : functions;
  const functionCallingConfig = encodeChoice(toolChoice, offered);
  const written = offered.length > 0 ? [{ functionDeclarations: offered }, ...own] : own;
  return {
    ...(written.length > 0 && { tools: written }),
    ...(functionCallingConfig && { toolConfig: { functionCallingConfig } }),
  };
}

function declaration(tool: Tool, called: FunctionTool, context: EncodeContext): JsonRecord {
  const { name, description, parametersJson, strict } = called;
  noteHints(tool, context);
  if (strict === true) context.drop("tools.strict");
  const schema = parametersJson === "" ? undefined : parseRecord(parametersJson);
  if (schema === undefined && parametersJson !== "") {
    throw refused(`the parameters of the tool "${name}" must be a JSON object`, "tools");
  }
  return {
    name,
    ...(description && { description }),
    ...(schema && { parametersJsonSchema: schema }),
    ...context.extras(tool.extras),
  };
}

function noteHints(tool: Tool, context: EncodeContext): void {
  if (tool.cacheHint !== undefined) context.drop("cache_hint");
  if (tool.namespace !== "") context.drop("tools.namespace");
}

/** A tool of Gemini itself. Those of others, and tools that take free text, it has not. */
function ownTool({ kind }: Tool): JsonRecord {
  if (kind.case === "opaque" && kind.value.dialect === Dialect.GEMINI) {
    return parseRecord(kind.value.json) ?? {};
  }
  throw refused(unknownTool(kind), "tools");
}

function unknownTool(kind: Tool["kind"]): string {
  if (kind.case === "custom") {
    return `this model's vendor has no tools that take free text: make "${kind.value.name}" a function`;
  }
  const type = kind.case === "opaque" ? kind.value.type : "(none)";
  return `the tool "${type}" is not one of this model's vendor: leave it out or use another model`;
}

/** Without its namespace a name may not be the only one of its kind; Gemini would refuse that darkly. */
function checkNames(functions: readonly JsonRecord[]): void {
  const names = new Set<unknown>();
  for (const { name } of functions) {
    if (names.has(name))
      throw refused(`the tool "${String(name)}" is there twice: rename one`, "tools");
    names.add(name);
  }
}

/** Whether the choice leaves only some of the tools. Gemini can be told so only where it must call one. */
function isLimited(choice: ToolChoice | undefined): choice is ToolChoice {
  return choice !== undefined && choice.allowed.length > 0 && choice.mode === ToolChoiceMode.AUTO;
}

function encodeChoice(
  choice: ToolChoice | undefined,
  functions: readonly JsonRecord[],
): FunctionCallingConfig | undefined {
  if (choice === undefined) return undefined;
  if (choice.opaque !== undefined) return ownChoice(choice.opaque);
  const { mode, tool, allowed } = choice;
  const mustCall = mode === ToolChoiceMode.REQUIRED || mode === ToolChoiceMode.NAMED;
  if (functions.length === 0) {
    if (mustCall)
      throw refused("a tool must be called, but there is none: send tools", "tool_choice");
    return undefined;
  }
  if (mode === ToolChoiceMode.AUTO) return { mode: "AUTO" };
  if (mode === ToolChoiceMode.NONE) return { mode: "NONE" };
  if (!mustCall) return undefined;
  const names =
    mode === ToolChoiceMode.NAMED ? [tool?.name ?? ""] : allowed.map(({ name }) => name);
  for (const name of names) {
    if (functions.some((each) => each["name"] === name)) continue;
    throw refused(`the tool "${name}" is to be called, but is not among the tools`, "tool_choice");
  }
  return { mode: "ANY", ...(names.length > 0 && { allowedFunctionNames: names }) };
}

function ownChoice({ dialect, type, json }: OpaquePart): FunctionCallingConfig | undefined {
  const config = dialect === Dialect.GEMINI ? parseRecord(json) : undefined;
  const mode = (["AUTO", "NONE", "ANY"] as const).find((each) => each === config?.["mode"]);
  if (mode !== undefined) return { ...config, mode };
  throw refused(`the tool choice "${type}" is none of this model's vendor's`, "tool_choice");
}
