/** Gemini's generateContent, as vendors speak it. */
import type { VendorDialect } from "../dialect.ts";
import { decodeGeminiReply, splitGeminiCandidates } from "./decode-reply.ts";
import { addedGeminiText, GeminiStreamDecoder, GeminiStreamSplitter } from "./decode-stream.ts";
import { decodeGeminiError } from "./errors.ts";
import { encodeGeminiRequest, geminiStops } from "./encode-request.ts";
import { guardGemini } from "./guard.ts";

export const gemini: VendorDialect = {
  word: "gemini",
  encodeRequest: encodeGeminiRequest,
  sentStops: geminiStops,
  guard: guardGemini,
  decodeReply: decodeGeminiReply,
  splitChoices: splitGeminiCandidates,
  decodeStream: () => new GeminiStreamDecoder(),
  splitStream: (choices) => new GeminiStreamSplitter(choices),
  addedTextBytes: addedGeminiText,
  decodeError: decodeGeminiError,
};
