/** Requests of other styles, for the tests of what is written for vendors of this one. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type ConversationSchema,
  MediaType,
  type PartSchema,
  Role,
  ToolType,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { GenerationSchema } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { encode } from "./support.ts";

export type PartInit = MessageInitShape<typeof PartSchema>;
export type Init = MessageInitShape<typeof GenerationSchema>;

export const text = (value: string): PartInit => ({
  kind: { case: "text", value: { text: value } },
});
export const call = (id: string, name = "f", input = ""): PartInit => ({
  kind: { case: "toolCall", value: { id, name, type: ToolType.FUNCTION, input } },
});
export const result = (toolCallId: string, parts: PartInit[], isError = false): PartInit => ({
  kind: { case: "toolResult", value: { toolCallId, parts, isError } },
});
export const picture: PartInit = {
  kind: {
    case: "media",
    value: {
      type: MediaType.IMAGE,
      mimeType: "image/png",
      source: { case: "base64", value: "AAAA" },
    },
  },
};
export const user = (...parts: PartInit[]) => ({ role: Role.USER, parts });
export const model = (...parts: PartInit[]) => ({ role: Role.ASSISTANT, parts });
export const system = (...parts: PartInit[]) => ({ role: Role.SYSTEM, parts });

export const generation = (init: Init) => create(GenerationSchema, init);
export const write = (init: Init, stream = false) =>
  encode(generation(init), Dialect.MESSAGES, stream);
export const converse = (conversation: MessageInitShape<typeof ConversationSchema>) =>
  encode(generation({ conversation }), Dialect.RESPONSES);
export const messagesOf = (
  ...turns: MessageInitShape<typeof ConversationSchema>["turns"] & object
) => converse({ turns }).body.messages;
