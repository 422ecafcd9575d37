import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { DecodeRequestOptions } from "../codec.ts";

/** See {@link CallerCodec.decodeRequest}. */
export function decodeResponsesRequest(
  _body: Uint8Array,
  _options: DecodeRequestOptions,
): Generation {
  throw new Error("not written yet");
}
