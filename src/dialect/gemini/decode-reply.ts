import type { Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorError } from "../codec.ts";

/** See {@link VendorCodec.decodeReply}. */
export function decodeGeminiReply(_body: Buffer): Reply {
  throw new Error("not written yet");
}

/** See {@link VendorCodec.decodeError}. */
export function decodeGeminiError(_body: Buffer): VendorError | undefined {
  throw new Error("not written yet");
}
