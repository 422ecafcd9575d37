/** The vendor's side of messages: what is asked for into a request body. */
import { create } from "@bufbuild/protobuf";
import { ConversationSchema } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";
import { type JsonBody, LongTexts, textsOf } from "../json/long-texts.ts";
import { encodeFormat } from "./encode-format.ts";
import { encodeReasoning } from "./encode-reasoning.ts";
import { encodeSampling, refuseForeignExtras } from "./encode-sampling.ts";
import { encodeTools } from "./encode-tools.ts";
import { encodeTurns } from "./encode-turns.ts";
import { type JsonBranch, type JsonTree, writeJson } from "./json-text.ts";
import { traitsOf } from "./model-traits.ts";
import { RequestWriter } from "./request-writer.ts";
import { writeServiceTier } from "./service-tier.ts";

/** What `max_tokens` is where neither the request nor the catalogue tells: the style demands it. */
const maxTokensDefault = 4096;

/** The newer version takes no sampling parameters, the older one all there is. */
const newVersion = "2026-10-21";
const oldVersion = "2023-06-01";

/** See {@link VendorCodec.encodeRequest}. */
export function encodeMessagesRequest(
  generation: Generation,
  target: RequestTarget,
): EncodedRequest {
  const writer = new RequestWriter(target.sourceDialect);
  if (!writer.isOwn) refuseForeignExtras(generation.extras);
  const conversation = generation.conversation ?? create(ConversationSchema);
  const { format, line } = encodeFormat(generation.responseFormat, writer);
  const { members, canThink } = encodeTurns(conversation.turns, line, writer);
  const maxTokens = generation.maxOutputTokens ?? (target.maxOutputTokens || maxTokensDefault);
  const traits = traitsOf(target.model);
  const reasoning = encodeReasoning({ generation, traits, maxTokens, canThink, writer });
  const { thinking, effort, isOn } = reasoning;
  const config = { ...(effort && { effort }), ...(format && { format }) };
  const body = {
    model: target.model,
    max_tokens: maxTokens,
    ...members,
    ...encodeTools(conversation, writer),
    ...(thinking && { thinking }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
    ...encodeSampling(generation, { thinks: isOn, takes: traits.sampling }, writer),
    ...encodeIdentity(generation, writer),
    ...(target.stream && { stream: true }),
  };
  const version = writer.needsOldVersion ? oldVersion : newVersion;
  return {
    ...writeBody(withExtras(body, generation, writer), textsOf(generation)),
    headers: { "anthropic-version": version },
    dropped: writer.dropped,
  };
}

function writeBody(tree: JsonTree, texts: LongTexts | undefined): JsonBody {
  return (texts ?? new LongTexts()).write((hide) => writeJson(tree, hide));
}

/** Who asks, and in what class of service. */
function encodeIdentity(generation: Generation, writer: RequestWriter): JsonBranch {
  const { endUser, serviceTier, cacheKey } = generation;
  if (cacheKey !== "") writer.drop("cache_key");
  const tier = writeServiceTier(serviceTier);
  if (tier === undefined && serviceTier !== "") writer.drop("service_tier");
  return {
    ...(endUser !== "" && { metadata: { user_id: endUser } }),
    ...(tier !== undefined && { service_tier: tier }),
  };
}

/** Puts extras of this style back where they stood: a dot leads into a member that is an object. */
function withExtras(body: JsonBranch, { extras }: Generation, writer: RequestWriter): JsonBranch {
  const written: Record<string, JsonTree | undefined> = { ...body };
  for (const [path, value] of Object.entries(writer.extras(extras))) {
    const [name = "", inner] = splitPath(path);
    if (inner === undefined) written[name] = value;
    else written[name] = { ...(written[name] as JsonBranch | undefined), [inner]: value };
  }
  return written;
}

const parents = ["metadata", "output_config", "tool_choice"];

/** Other members may have a dot in their name. */
function splitPath(path: string): string[] {
  const parent = parents.find((name) => path.startsWith(`${name}.`));
  return parent === undefined ? [path] : [parent, path.slice(parent.length + 1)];
}
