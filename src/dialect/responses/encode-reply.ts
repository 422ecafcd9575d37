import type { Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../codec.ts";

/** See {@link CallerCodec.encodeReply}. */
export function encodeResponsesReply(_reply: Reply, _options: ReplyOptions): Buffer {
  throw new Error("not written yet");
}
