import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { StreamDecoder } from "../codec.ts";

/** See {@link VendorCodec.decodeStream}. */
export class GeminiStreamDecoder implements StreamDecoder {
  push(_pieces: readonly Buffer[]): GenerateEvent[] {
    throw new Error("not written yet");
  }

  end(): GenerateEvent[] {
    throw new Error("not written yet");
  }
}
