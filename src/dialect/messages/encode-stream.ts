import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { GatewayError } from "../../errors.ts";
import type { ReplyOptions, StreamEncoder } from "../codec.ts";

/** See {@link CallerCodec.encodeStream}. */
export class MessagesStreamEncoder implements StreamEncoder {
  constructor(_options: ReplyOptions) {}

  push(_event: GenerateEvent): string {
    throw new Error("not written yet");
  }

  fail(_error: GatewayError): string {
    throw new Error("not written yet");
  }
}
