/** Replies of Gemini: candidates, whole or one piece an event. */
import { type Json, object } from "./read.ts";
import { type Play, tokens, type Turn } from "./scenario.ts";
import { seal } from "./seal.ts";
import { dataFrame, type WriteContext, type Written } from "./strict.ts";

const reasons = { stop: "STOP", calls: "STOP", length: "MAX_TOKENS", refusal: "SAFETY" } as const;

/**
 * Writes a reply. Thoughts are shown where the request includes them; signatures come either way.
 */
export function writeGemini(play: Play, _turn: Turn, { request, id }: WriteContext): Written {
  const config = object(request.json?.["generationConfig"]);
  const isShown = object(config["thinkingConfig"])["includeThoughts"] === true;
  const parts = partsOf(play, isShown);
  const last = { finishReason: reasons[play.end], index: 0 };
  const envelope = { modelVersion: "vendor-model-001", responseId: id };
  const usageMetadata = usageOf(play);
  const candidate = (content: readonly Json[], end: Json): Json => ({
    ...(content.length > 0 && { content: { parts: content, role: "model" } }),
    ...end,
  });
  const pieces = parts.length > 0 ? parts : [undefined];
  return {
    whole: { candidates: [candidate(joined(parts), last)], usageMetadata, ...envelope },
    frames: pieces.map((part, at) =>
      dataFrame({
        candidates: [candidate(part ? [part] : [], at === pieces.length - 1 ? last : { index: 0 })],
        usageMetadata,
        ...envelope,
      }),
    ),
  };
}

/**
 * Parts as a stream sends them: text in pieces, calls whole; what was thought is signed on what
 * follows.
 */
function partsOf(play: Play, isShown: boolean): Json[] {
  const thought = play.reasoning.join("");
  const signature =
    thought === "" ? {} : { thoughtSignature: seal({ issuer: "gemini", id: "", text: thought }) };
  const thoughts = isShown ? play.reasoning.map((text) => ({ text, thought: true })) : [];
  const texts = play.end === "refusal" ? [] : play.text.map((text) => ({ text }));
  const calls = play.calls.map((call) => ({
    functionCall: { name: call.name, args: JSON.parse(call.arguments) as unknown },
  }));
  const [first, ...others] = [...texts, ...calls];
  return [...thoughts, ...(first ? [{ ...first, ...signature }, ...others] : [])];
}

/** Neighbouring pieces of text of one kind are one part in a whole reply. */
function joined(parts: readonly Json[]): Json[] {
  const whole: Json[] = [];
  for (const part of parts) {
    const last = whole.at(-1);
    const isMore =
      last !== undefined &&
      typeof last["text"] === "string" &&
      typeof part["text"] === "string" &&
      last["thought"] === part["thought"];
    if (isMore) last["text"] = `${String(last["text"])}${String(part["text"])}`;
    else whole.push({ ...part });
  }
  return whole;
}

function usageOf(play: Play): Json {
  const { input, cached, output, reasoning } = tokens;
  const thoughtsTokenCount = play.reasoning.length > 0 ? reasoning : 0;
  return {
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    candidatesTokenCount: output - thoughtsTokenCount,
    ...(thoughtsTokenCount > 0 && { thoughtsTokenCount }),
    totalTokenCount: input + output,
    promptTokensDetails: [{ modality: "TEXT", tokenCount: input }],
  };
}
