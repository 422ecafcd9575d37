import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";

/** See {@link VendorCodec.encodeRequest}. */
export function encodeGeminiRequest(
  _generation: Generation,
  _target: RequestTarget,
): EncodedRequest {
  throw new Error("not written yet");
}
