/** Gemini's generateContent, as vendors speak it. */
import type { VendorDialect } from "../dialect.ts";
import { decodeGeminiError, decodeGeminiReply } from "./decode-reply.ts";
import { addedGeminiText, GeminiStreamDecoder } from "./decode-stream.ts";
import { encodeGeminiRequest, geminiStops } from "./encode-request.ts";
import { guardGemini } from "./guard.ts";

export const gemini: VendorDialect = {
  word: "gemini",
  encodeRequest: encodeGeminiRequest,
  sentStops: geminiStops,
  guard: guardGemini,
  decodeReply: decodeGeminiReply,
  decodeStream: () => new GeminiStreamDecoder(),
  addedTextBytes: addedGeminiText,
  decodeError: decodeGeminiError,
};
