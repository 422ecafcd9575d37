import { type DescMessage, isMessage, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  CancelResponseResponseSchema,
  DeleteResponseResponseSchema,
  GetResponseResponseSchema,
  ListInputItemsResponseSchema,
} from "../../../gen/uas/inference/v1/response_service_pb.ts";
import { chatCompletions } from "../chat-completions/dialect.ts";

/** The bodies of RPCs that are no text generation: responses that are kept. Their JSON goes out as it is;
 * models and the like look as in chat completions. */
export function responsesReplyBody(schema: DescMessage, message: Message): JsonObject | Uint8Array {
  if (isMessage(message, GetResponseResponseSchema)) return message.response;
  if (isMessage(message, CancelResponseResponseSchema)) return message.response;
  if (isMessage(message, ListInputItemsResponseSchema)) return message.page;
  if (isMessage(message, DeleteResponseResponseSchema)) {
    return { id: message.responseId, object: "response", deleted: true };
  }
  return chatCompletions.replyBody(schema, message);
}
