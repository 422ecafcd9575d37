/** Tools and the choice among them, as function declarations. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Conversation,
  type CustomTool,
  type FunctionTool,
  type OpaquePart,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import { customInputSchema } from "../tools/custom-tools.ts";
import type { EncodeContext } from "./encode-context.ts";
import type { FunctionCallingConfig, GeminiRequest } from "./wire.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { type JsonRecord, parseRecord } from "../../wire/json/value.ts";
import { toolNameFor } from "../tools/tool-names.ts";
import { dropWebSearch, readWebSearch, refuseDomains, type WebSearch } from "../web-search.ts";

/** Names tools for Gemini. */
export const geminiToolName = toolNameFor({ charsMax: 128, dots: true });

/** A tool as the caller calls it, and as Gemini gets it. */
interface Declaration {
  readonly called: string;
  readonly name: string;
  readonly wire: JsonRecord;
}

/** The tools' part of a request. @throws GatewayError INVALID_REQUEST if Gemini has no such tool */
export function encodeTools(
  { tools, toolChoice, parallelToolCalls }: Conversation,
  context: EncodeContext,
): Pick<GeminiRequest, "tools" | "toolConfig"> {
  // Gemini always allows parallel calls; no setting disables them.
  if (parallelToolCalls === false) context.drop("parallel_tool_calls");
  const functions: Declaration[] = [];
  const own: (JsonRecord | JsonText)[] = [];
  for (const tool of tools) {
    if (tool.cacheHint !== undefined) context.drop("cache_hint");
    if (tool.namespaceDescription !== "") context.drop("tools.namespace_description");
    const { kind } = tool;
    if (kind.case === "function") functions.push(declare(tool, kind.value, context));
    else if (kind.case === "custom") functions.push(declareCustom(tool, kind.value, context));
    else own.push(ownTool(kind.value, context));
  }
  const allowed = isLimited(toolChoice) && new Set(toolChoice.allowed.map(({ name }) => name));
  const offered = allowed ? functions.filter(({ called }) => allowed.has(called)) : functions;
  const functionCallingConfig = encodeChoice(toolChoice, offered);
  const functionDeclarations = offered.map(({ wire }) => wire);
  const written = functionDeclarations.length > 0 ? [{ functionDeclarations }, ...own] : own;
  return {
    ...(written.length > 0 && { tools: written }),
    ...(functionCallingConfig && { toolConfig: { functionCallingConfig } }),
  };
}

function declare(tool: Tool, made: FunctionTool, context: EncodeContext): Declaration {
  const { name: called, description, parametersJson, strict } = made;
  if (strict === true) context.drop("tools.strict");
  if (parametersJson !== "" && parseRecord(parametersJson) === undefined) {
    throw invalid("tools", `the parameters of the tool "${called}" must be a JSON object`);
  }
  const name = geminiToolName({ name: called, namespace: tool.namespace });
  const wire = {
    name,
    ...(description && { description }),
    ...(parametersJson && { parametersJsonSchema: new JsonText(parametersJson) }),
    ...context.extras(tool.extras),
  };
  return { called, name, wire };
}

/** Gemini supports only functions: a function with a single text replaces a tool with free text. */
function declareCustom(tool: Tool, made: CustomTool, context: EncodeContext): Declaration {
  const { name: called, description, formatJson } = made;
  const type = formatJson === "" ? "text" : parseRecord(formatJson)?.["type"];
  if (type !== "text") context.drop("tools.format");
  const name = geminiToolName({ name: called, namespace: tool.namespace });
  const wire = {
    name,
    ...(description && { description }),
    parametersJsonSchema: new JsonText(customInputSchema),
    ...context.extras(tool.extras),
  };
  return { called, name, wire };
}

/** Returns a built-in tool of Gemini. Of other vendors' built-in tools it has only the search. */
function ownTool(tool: OpaquePart | undefined, context: EncodeContext): JsonRecord | JsonText {
  const search = tool && readWebSearch(tool);
  if (search !== undefined) return googleSearch(search, context);
  const isOwn = tool?.dialect === Dialect.GEMINI && parseRecord(tool.json) !== undefined;
  if (isOwn) return new JsonText(tool.json);
  const type = tool?.type ?? "(none)";
  throw invalid(
    "tools",
    `this model's vendor has no tool "${type}": leave it out, or use another model`,
  );
}

/** The search takes no settings. */
function googleSearch(search: WebSearch, context: EncodeContext): JsonRecord {
  refuseDomains(search.allowedDomains, "allowed_domains");
  refuseDomains(search.blockedDomains, "blocked_domains");
  dropWebSearch(search, new Set(), (name) => context.drop(name));
  return { googleSearch: {} };
}

/**
 * Whether the choice allows only some of the tools. Gemini accepts such a list only if it must call
 * one.
 */
function isLimited(choice: ToolChoice | undefined): choice is ToolChoice {
  return choice !== undefined && choice.allowed.length > 0 && choice.mode === ToolChoiceMode.AUTO;
}

function encodeChoice(
  choice: ToolChoice | undefined,
  functions: readonly Declaration[],
): FunctionCallingConfig | JsonText | undefined {
  if (choice === undefined) return undefined;
  if (choice.opaque !== undefined) return ownChoice(choice.opaque);
  const { mode } = choice;
  const mustCall = mode === ToolChoiceMode.REQUIRED || mode === ToolChoiceMode.NAMED;
  if (functions.length === 0) {
    if (!mustCall) return undefined;
    throw invalid("tool_choice", "the tool choice requires a tool, but there are none: send tools");
  }
  if (mode === ToolChoiceMode.AUTO) return { mode: "AUTO" };
  if (mode === ToolChoiceMode.NONE) return { mode: "NONE" };
  return mustCall ? mustCallOneOf(choice, functions) : undefined;
}

function mustCallOneOf(
  { mode, tool, allowed }: ToolChoice,
  functions: readonly Declaration[],
): FunctionCallingConfig {
  const wanted = mode === ToolChoiceMode.NAMED && tool !== undefined ? [tool] : allowed;
  // Of two with one name the first counts, which a map would let the second replace.
  const known = new Map(functions.toReversed().map(({ called, name }) => [called, name]));
  const allowedFunctionNames = wanted.map(({ name }) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    throw invalid(
      "tool_choice",
      `the tool choice names "${name}", which is not among the tools: send that tool`,
    );
  });
  return { mode: "ANY", ...(allowedFunctionNames.length > 0 && { allowedFunctionNames }) };
}

function ownChoice({ dialect, type, json }: OpaquePart): JsonText {
  const config = dialect === Dialect.GEMINI ? parseRecord(json) : undefined;
  if (["AUTO", "NONE", "ANY"].some((each) => each === config?.["mode"])) return new JsonText(json);
  throw invalid(
    "tool_choice",
    `this model's vendor does not support the tool choice "${type}": use auto, none or required`,
  );
}
