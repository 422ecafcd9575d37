/** The items of a responses request as turns: one turn for each item, so that each goes back as it came. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  OpaquePartSchema,
  type Part,
  type Reasoning,
  ReasoningSchema,
  ReasoningSealSchema,
  Role,
  ToolType,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonReader } from "../json-reader.ts";
import { newPart, newToolCall, newToolResult, newTurn, textPart } from "../parts.ts";
import { openSeal } from "../seal.ts";
import { decodeContent, extrasOf } from "./decode-content.ts";

/**
 * Reads an item of `input`.
 *
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function decodeItem(item: JsonReader): Turn {
  const type = item.text("type") || (item.has("role") ? "message" : "item_reference");
  switch (type) {
    case "message":
      return messageTurn(item);
    case "function_call":
      return callTurn(item, ToolType.FUNCTION);
    case "custom_tool_call":
      return callTurn(item, ToolType.CUSTOM);
    case "function_call_output":
      return resultTurn(item, ToolType.FUNCTION);
    case "custom_tool_call_output":
      return resultTurn(item, ToolType.CUSTOM);
    case "reasoning":
      return turnOf(Role.ASSISTANT, item, { case: "reasoning", value: decodeReasoning(item) });
    default:
      return opaqueTurn(item, type);
  }
}

/** Instructions as the turn that they begin the conversation with. */
export function instructionsTurn(text: string): Turn {
  return newTurn(Role.SYSTEM, [textPart(text)], { roleWord: "instructions", plain: true });
}

const roles = {
  user: Role.USER,
  assistant: Role.ASSISTANT,
  system: Role.SYSTEM,
  developer: Role.SYSTEM,
} as const;

const roleWords = ["user", "assistant", "system", "developer"] as const;

function messageTurn(item: JsonReader): Turn {
  const word = item.word("role", roleWords);
  if (word === undefined) throw item.invalid("is missing", "role");
  const role = roles[word];
  const roleWord = role === Role.SYSTEM ? word : "";
  const itemId = item.text("id");
  const { parts, plain } = decodeContent(item, "content");
  return newTurn(role, parts, { roleWord, itemId, plain, extras: extrasOf(item) });
}

function callTurn(item: JsonReader, type: ToolType): Turn {
  const member = type === ToolType.CUSTOM ? "input" : "arguments";
  return turnOf(Role.ASSISTANT, item, {
    case: "toolCall",
    value: newToolCall(type, {
      id: item.requiredText("call_id"),
      name: item.requiredText("name"),
      input: item.text(member),
      namespace: item.text("namespace"),
      itemId: item.text("id"),
    }),
  });
}

function resultTurn(item: JsonReader, type: ToolType): Turn {
  return turnOf(Role.USER, item, {
    case: "toolResult",
    value: newToolResult({
      toolCallId: item.requiredText("call_id"),
      type,
      itemId: item.text("id"),
      ...decodeContent(item, "output"),
    }),
  });
}

function decodeReasoning(item: JsonReader): Reasoning {
  const opaque = item.text("encrypted_content");
  const summaries = item.objects("summary").map((part) => part.text("text"));
  const content = item.objects("content").map((part) => part.text("text"));
  const itemId = item.text("id");
  const opened = opaque === "" ? undefined : openSeal(opaque);
  if (opened !== undefined) {
    const { seal, ...shown } = opened;
    return create(ReasoningSchema, { ...shown, ...(seal && { seal }) });
  }
  return create(ReasoningSchema, {
    text: content.join(""),
    summaries,
    itemId,
    ...(opaque && {
      seal: create(ReasoningSealSchema, { dialect: Dialect.RESPONSES, data: opaque }),
    }),
  });
}

const systemTypes: ReadonlySet<string> = new Set([
  "additional_tools",
  "configuration_update",
  "compaction_trigger",
]);

/** A built-in tool's call or result, a reference, or something newer than this gateway. */
function opaqueTurn(item: JsonReader, type: string): Turn {
  // All of it is in the part: nothing is left over.
  item.readAll();
  const isResult = type.endsWith("_output") || type === "mcp_approval_response";
  const role = isResult ? Role.USER : systemTypes.has(type) ? Role.SYSTEM : Role.ASSISTANT;
  const init = { dialect: Dialect.RESPONSES, type, json: item.toJson() };
  return turnOf(role, item, { case: "opaque", value: create(OpaquePartSchema, init) });
}

function turnOf(role: Role, item: JsonReader, kind: Part["kind"]): Turn {
  return newTurn(role, [newPart(kind, extrasOf(item))]);
}
