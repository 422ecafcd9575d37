/** What whole and streamed replies to a client have in common. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { OpaquePart } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { ReplyOptions } from "../codec.ts";

/** The reply's id: the vendor's own where it is one of this style. */
export function messageId(id: string, { callId }: ReplyOptions): string {
  return id.startsWith("msg_") ? id : `msg_${callId}`;
}

/** What only this style knows, as JSON; of another style it is dropped and reported. */
export function clientOpaque(
  { dialect, type, json }: OpaquePart,
  { onDropped }: ReplyOptions,
): string | undefined {
  if (dialect === Dialect.MESSAGES) return json;
  onDropped(type);
  return undefined;
}
