/** Requests in chat completions, as a vendor of messages gets them. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  ConversationSchema,
  Role,
  ToolType,
  TurnSchema,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { GenerationSchema } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { encodeMessagesRequest } from "../../../../src/dialect/messages/encode-request.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

/** The init of a request. */
export type Init = MessageInitShape<typeof GenerationSchema>;
/** The init of a turn. */
export type TurnInit = MessageInitShape<typeof TurnSchema>;

/** A turn of one text. */
export const say = (role: Role, text: string): TurnInit => ({
  role,
  parts: [{ kind: { case: "text", value: { text } } }],
  plain: true,
});
/** A user's turn. */
export const hi = say(Role.USER, "hi");
/** A turn that calls the tool `f`. */
export const call = (id: string, input = "{}"): TurnInit => ({
  role: Role.ASSISTANT,
  parts: [{ kind: { case: "toolCall", value: { id, name: "f", type: ToolType.FUNCTION, input } } }],
});
/** A turn with what a tool answered. */
export const result = (toolCallId: string, text: string): TurnInit => ({
  role: Role.USER,
  parts: [
    {
      kind: {
        case: "toolResult",
        value: {
          toolCallId,
          plain: true,
          parts: [{ kind: { case: "text", value: { text } } }],
        },
      },
    },
  ],
});
/** The tool `f`. */
export const f = { kind: { case: "function" as const, value: { name: "f" } } };

/** Encodes a chat completions request for a vendor. */
export function encode(init: Init, turns: readonly TurnInit[] = [hi], maxOutputTokens = 8_000) {
  const generation = create(GenerationSchema, { model: "m", ...init });
  const given = generation.conversation ?? create(ConversationSchema);
  generation.conversation = { ...given, turns: turns.map((turn) => create(TurnSchema, turn)) };
  const { body, headers, dropped } = encodeMessagesRequest(generation, {
    model: "vendor",
    stream: false,
    maxOutputTokens,
    sourceDialect: Dialect.CHAT_COMPLETIONS,
  });
  const text = body.toString();
  return { sent: JSON.parse(text), text, version: headers["anthropic-version"], dropped };
}

/** Why a request is refused. */
export function refusal(init: Init, turns?: readonly TurnInit[]): GatewayError {
  try {
    encode(init, turns);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was accepted");
}
