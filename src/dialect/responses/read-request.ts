import type { ReadRequestOptions, TextRequest } from "../dialect.ts";

/** See {@link TextDialect.readRequest}. */
export function readResponsesRequest(_body: Uint8Array, _options: ReadRequestOptions): TextRequest {
  throw new Error("not written yet");
}
