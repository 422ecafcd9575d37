/** Gemini's generateContent, as vendors speak it. */
import type { VendorDialect } from "../dialect.ts";
import { decodeGeminiError, decodeGeminiReply } from "./decode-reply.ts";
import { GeminiStreamDecoder } from "./decode-stream.ts";
import { encodeGeminiRequest } from "./encode-request.ts";

export const gemini: VendorDialect = {
  word: "gemini",
  encodeRequest: encodeGeminiRequest,
  decodeReply: decodeGeminiReply,
  decodeStream: () => new GeminiStreamDecoder(),
  decodeError: decodeGeminiError,
};
