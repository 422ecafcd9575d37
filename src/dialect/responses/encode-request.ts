/** A responses request, written for a vendor. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ConversationSchema, type Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { invalid } from "../../core/validation.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";
import { jsonBody, textsOf } from "../../wire/json/long-texts.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { isRecord, type JsonRecord, setMember } from "../../wire/json/value.ts";
import { encryptedReasoning } from "./decode-request.ts";
import { encodeTurns } from "./encode-content.ts";
import { EncodeContext } from "./encode-context.ts";
import { asksForReasoning, encodeReasoning, encodeText } from "./encode-settings.ts";
import { encodeTooling } from "./encode-tools.ts";
import { nameFor } from "./wire.ts";

/** The fewest output tokens that the style can ask for. */
const outputTokensMin = 16;

/** Implements {@link VendorCodec.encodeRequest}. */
export function encodeResponsesRequest(
  generation: Generation,
  target: RequestTarget,
): EncodedRequest {
  const context = new EncodeContext(target.sourceDialect, target.quirks);
  refuseUnspeakable(generation, context);
  const conversation = generation.conversation ?? create(ConversationSchema);
  const body = {
    model: target.model,
    ...encodeTurns(conversation.turns, context),
    ...encodeTooling(conversation, context),
    ...encodeSettings(generation, context),
    ...(target.stream && { stream: true }),
    // The gateway itself stores translated responses, if they are stored.
    ...(!context.isOwn && { store: false }),
  };
  dropUnknown(generation, context);
  const whole = context.isOwn
    ? addOwnExtras(body, generation.extras)
    : withForeignExtras(body, generation.extras, context);
  return { ...jsonBody(whole, textsOf(generation)), headers: {}, dropped: context.dropped };
}

function refuseUnspeakable({ extras }: Generation, { isOwn }: EncodeContext): void {
  if (isOwn) return;
  for (const { name, json } of extras) {
    if (name === "n" && json !== "1") {
      throw invalid("n", "This model gives one choice per request: send n = 1");
    }
    if ((name === "modalities" && json.includes('"audio"')) || name === "audio") {
      throw invalid(name, "This model returns no audio: request text only");
    }
  }
}

function encodeSettings(generation: Generation, context: EncodeContext): JsonRecord {
  const { maxOutputTokens: max, temperature, topP, cacheKey, endUser } = generation;
  const reasoning = generation.reasoning && encodeReasoning(generation.reasoning);
  const text = encodeText(generation, context);
  const tier = serviceTier(generation, context);
  const include = includeOf(generation, context);
  const isTooFew = !context.isOwn && max !== undefined && max < outputTokensMin;
  if (isTooFew) context.drop("max_output_tokens");
  return {
    ...(max !== undefined && { max_output_tokens: isTooFew ? outputTokensMin : max }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(context.isOwn && penalties(generation)),
    ...(reasoning && { reasoning }),
    ...(include.length > 0 && { include }),
    ...(text && { text }),
    ...(endUser && { safety_identifier: nameFor(endUser) }),
    ...(tier && { service_tier: tier }),
    ...(cacheKey && { prompt_cache_key: nameFor(cacheKey) }),
  };
}

/** Reasoning is always asked for in sealed form too, so that the next turn can carry it. */
function includeOf({ reasoning }: Generation, { isOwn }: EncodeContext): string[] {
  const wantsEncrypted = reasoning?.encrypted === true || (!isOwn && asksForReasoning(reasoning));
  return wantsEncrypted ? [encryptedReasoning] : [];
}

function serviceTier({ serviceTier: tier }: Generation, { source }: EncodeContext): string {
  return source === Dialect.MESSAGES && tier === "standard_only" ? "default" : tier;
}

/** Some vendors of this style accept them; OpenAI refuses them. */
function penalties({ presencePenalty, frequencyPenalty }: Generation): JsonRecord {
  return {
    ...(presencePenalty !== undefined && { presence_penalty: presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequency_penalty: frequencyPenalty }),
  };
}

/** Drops hints that vendors of this style may not support. */
function dropUnknown(generation: Generation, { drop, isOwn }: EncodeContext): void {
  if (generation.topK !== undefined) drop("top_k");
  if (generation.seed !== undefined) drop("seed");
  if (isOwn) return;
  if (generation.presencePenalty !== undefined) drop("presence_penalty");
  if (generation.frequencyPenalty !== undefined) drop("frequency_penalty");
}

/**
 * Adds extras at their path: next to the body's members, or inside one of them. The body was
 * created for this request, so it is changed in place.
 */
function addOwnExtras(
  body: Record<string, unknown>,
  extras: readonly Extra[],
): Record<string, unknown> {
  for (const { name, json } of extras) {
    const path = /^(?:text|reasoning)\./.test(name) ? name.split(".") : [name];
    const last = path.pop() ?? "";
    let place = body;
    for (const step of path) {
      const inner = Object.hasOwn(place, step) ? place[step] : undefined;
      const isOpen = isRecord(inner) && !(inner instanceof JsonText);
      place = isOpen ? inner : setMember(place, step, {});
    }
    const isList = last === "include";
    setMember(place, last, isList ? [...included(body), ...includedIn(json)] : new JsonText(json));
  }
  return body;
}

function included({ include }: JsonRecord): unknown[] {
  return Array.isArray(include) ? include : [];
}

function includedIn(json: string): unknown[] {
  return included({ include: JSON.parse(json) as unknown });
}

/** Members of chat completions that mean the same here. */
const shared: ReadonlySet<string> = new Set([
  "metadata",
  "prompt_cache_retention",
  "prompt_cache_options",
]);

function withForeignExtras(
  body: JsonRecord,
  extras: readonly Extra[],
  { source, drop }: EncodeContext,
): JsonRecord {
  let whole = body;
  for (const extra of extras) {
    const isChat = source === Dialect.CHAT_COMPLETIONS;
    if (isChat && shared.has(extra.name)) {
      whole = { ...whole, [extra.name]: new JsonText(extra.json) };
    } else if (extra.name !== "n") {
      drop(extra.name);
    }
  }
  return whole;
}
