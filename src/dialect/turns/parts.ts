/**
 * Builds turns and parts as plain objects: a request may have many thousand, and `create`, which
 * walks the schema, was half of the time to read it.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Extra,
  type Part,
  Role,
  type TextPart,
  type ToolCall,
  type ToolResult,
  type ToolType,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";

/** Optional members of a turn. */
type TurnInit = Partial<Pick<Turn, "name" | "roleWord" | "itemId" | "plain" | "extras">>;

/** A turn. */
export function newTurn(role: Role, parts: Part[], init: TurnInit = {}): Turn {
  const { name = "", roleWord = "", itemId = "", plain = false, extras = [] } = init;
  return { $typeName: "uas.inference.v1.Turn", role, parts, name, roleWord, itemId, plain, extras };
}

/** A part that holds `kind`. */
export function newPart(kind: Part["kind"], extras: Extra[] = []): Part {
  return { $typeName: "uas.inference.v1.Part", kind, extras };
}

/** A part that is nothing but text. */
export function textPart(text: string): Part {
  return newPart({ case: "text", value: newText(text) });
}

/** A text. */
export function newText(text: string, citations: TextPart["citations"] = []): TextPart {
  return { $typeName: "uas.inference.v1.TextPart", text, citations };
}

/** A call of a tool. */
export function newToolCall(
  type: ToolType,
  call: Pick<ToolCall, "id" | "name" | "input"> & Partial<Pick<ToolCall, "namespace" | "itemId">>,
): ToolCall {
  const { id, name, input, namespace = "", itemId = "" } = call;
  return { $typeName: "uas.inference.v1.ToolCall", id, name, type, input, namespace, itemId };
}

/** The result of a call. */
export function newToolResult(
  result: Pick<ToolResult, "toolCallId" | "parts" | "plain"> &
    Partial<Pick<ToolResult, "isError" | "type" | "name" | "itemId">>,
): ToolResult {
  const { toolCallId, parts, plain, isError = false, type = 0, name = "", itemId = "" } = result;
  const $typeName = "uas.inference.v1.ToolResult";
  return { $typeName, toolCallId, parts, isError, type, name, itemId, plain };
}

/** A member that the contract has no field for. */
export function newExtra(name: string, json: string): Extra {
  return { $typeName: "uas.inference.v1.Extra", name, json };
}

/**
 * Refuses a prefill: in messages the model continues a final assistant message; other styles would
 * begin a new reply.
 *
 * @param source the style that the request came in
 * @throws GatewayError INVALID_REQUEST
 */
export function refusePrefill(turns: readonly Turn[], source: Dialect | undefined): void {
  const last = turns.at(-1);
  if (source !== Dialect.MESSAGES || last?.role !== Role.ASSISTANT) return;
  if (last.parts.at(-1)?.kind.case !== "text") return;
  throw invalid(
    "messages",
    "This model cannot continue a message of the assistant: end the conversation with a user message",
  );
}
