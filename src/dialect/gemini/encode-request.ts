/** A generation, as the body of generateContent. */
import { jsonBody, textsOf } from "../json/long-texts.ts";
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";
import { EncodeContext, refused } from "./context.ts";
import { encodeConfig } from "./encode-config.ts";
import { encodeContents } from "./encode-contents.ts";
import { encodeTools } from "./encode-tools.ts";
import type { GeminiRequest } from "./wire.ts";

/** See {@link VendorCodec.encodeRequest}. The model and whether to stream are told by the address. */
export function encodeGeminiRequest(generation: Generation, target: RequestTarget): EncodedRequest {
  const { conversation, extras } = generation;
  if (conversation === undefined) throw refused("the messages are missing: send at least one");
  const context = new EncodeContext(target);
  checkExtras(extras);
  noteHints(generation, context);
  const { contents, system } = encodeContents(conversation.turns, context);
  const generationConfig = encodeConfig(generation, context);
  const serviceTier = encodeTier(generation, context);
  const request: GeminiRequest = {
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    contents,
    ...encodeTools(conversation, context),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...(serviceTier && { serviceTier }),
    ...context.extras(extras),
  };
  return { ...jsonBody(request, textsOf(generation)), headers: {}, dropped: context.dropped };
}

/** Members of other styles that ask for another reply than Gemini would give without them. */
const askForMore = new Map<string, (json: string) => boolean>([
  ["n", (json) => Number(json) > 1],
  ["modalities", (json) => json !== '["text"]'],
  ["web_search_options", () => true],
  ["previous_response_id", () => true],
  ["conversation", () => true],
  ["prompt", () => true],
  ["background", (json) => json === "true"],
  ["container", () => true],
  ["mcp_servers", (json) => json !== "[]"],
]);

function checkExtras(extras: readonly Extra[]): void {
  for (const { name, json } of extras) {
    if (!askForMore.get(name)?.(json)) continue;
    throw refused(`"${name}" means nothing to this model's vendor: leave it out`, name);
  }
}

function noteHints({ verbosity, endUser, cacheKey }: Generation, context: EncodeContext): void {
  if (verbosity !== "") context.drop("verbosity");
  if (endUser !== "") context.drop("end_user");
  if (cacheKey !== "") context.drop("cache_key");
}

/** Gemini's words for what others call by another; `auto` is what it does unasked. */
const tiers: ReadonlyMap<string, string> = new Map([
  ["auto", ""],
  ["default", "standard"],
  ["standard", "standard"],
  ["standard_only", "standard"],
  ["flex", "flex"],
  ["priority", "priority"],
]);

function encodeTier({ serviceTier }: Generation, context: EncodeContext): string {
  if (serviceTier === "") return "";
  const tier = tiers.get(serviceTier);
  if (tier === undefined) context.drop("service_tier");
  return tier ?? "";
}
