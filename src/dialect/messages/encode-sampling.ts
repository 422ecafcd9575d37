/** How words are chosen, for a vendor; and what of other styles cannot be asked for here. */
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { JsonBranch } from "./json-text.ts";
import { type RequestWriter, refused } from "./request-writer.ts";

/** The least `top_p` that the vendor takes while the model thinks. */
const thinkingTopPMin = 0.95;

/** What the model takes of it. */
export interface SamplingModel {
  /** Whether it will think: it takes no temperature and no `top_k` then. */
  readonly thinks: boolean;
  /** Whether it takes any at all. */
  readonly takes: boolean;
}

/**
 * The members, as far as the vendor takes them. A temperature above 1 becomes 1 and is reported as dropped,
 * since what is sent is not what was asked for.
 *
 */
export function encodeSampling(
  generation: Generation,
  model: SamplingModel,
  writer: RequestWriter,
): JsonBranch {
  dropUnknown(generation, writer);
  const stop = encodeStop(generation, writer);
  const sampling = writer.isOwn ? ownSampling(generation) : fitting(generation, model, writer);
  if (Object.keys(sampling).length > 0) writer.needsOldVersion = true;
  return { ...sampling, ...(stop.length > 0 && { stop_sequences: stop }) };
}

function ownSampling({ temperature, topP, topK }: Generation): JsonBranch {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
  };
}

function fitting(
  generation: Generation,
  { thinks, takes }: SamplingModel,
  writer: RequestWriter,
): JsonBranch {
  if (!takes) {
    const { temperature = 1, topP = 1, topK } = generation;
    if (temperature !== 1) writer.drop("temperature");
    if (topP !== 1) writer.drop("top_p");
    if (topK !== undefined) writer.drop("top_k");
    return {};
  }
  const temperature = fittingTemperature(generation, thinks, writer);
  const topP = fittingTopP(generation, { thinks, hasTemperature: temperature !== undefined });
  if (topP === undefined && (generation.topP ?? 1) !== 1) writer.drop("top_p");
  const topK = thinks ? undefined : generation.topK;
  if (topK === undefined && generation.topK !== undefined) writer.drop("top_k");
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
  };
}

function fittingTemperature(
  { temperature }: Generation,
  thinks: boolean,
  writer: RequestWriter,
): number | undefined {
  if (temperature === undefined) return undefined;
  // 1 is the vendor's own: without it the newer version of the wire will do, too.
  if (thinks && temperature === 1) return undefined;
  if (thinks || temperature > 1) writer.drop("temperature");
  return thinks ? undefined : Math.min(temperature, 1);
}

/** Models of this style refuse it beside a temperature. */
function fittingTopP(
  { topP }: Generation,
  { thinks, hasTemperature }: { thinks: boolean; hasTemperature: boolean },
): number | undefined {
  if (topP === undefined || hasTemperature || topP === 1) return undefined;
  return thinks && topP < thinkingTopPMin ? undefined : topP;
}

/** The vendor refuses stop texts of nothing but white space. */
function encodeStop({ stop }: Generation, writer: RequestWriter): readonly string[] {
  if (writer.isOwn) return stop;
  const fit = stop.filter((text) => text.trim() !== "");
  if (fit.length < stop.length) writer.drop("stop");
  return fit;
}

/** What the style has no member for. */
function dropUnknown(generation: Generation, writer: RequestWriter): void {
  const { seed, presencePenalty, frequencyPenalty, verbosity } = generation;
  if (seed !== undefined) writer.drop("seed");
  if (presencePenalty) writer.drop("presence_penalty");
  if (frequencyPenalty) writer.drop("frequency_penalty");
  if (verbosity !== "" && verbosity !== "medium") writer.drop("verbosity");
}

/** Members of other styles whose loss would change what is asked for, and the values that ask for nothing. */
const unservable: readonly (readonly [name: string, harmless: RegExp])[] = [
  ["n", /^1$/],
  ["modalities", /^\["text"\]$/],
  ["audio", /^null$/],
  ["web_search_options", /^null$/],
  ["previous_response_id", /^null$/],
  ["conversation", /^null$/],
  ["prompt", /^null$/],
  ["background", /^false$/],
];

/** @throws GatewayError INVALID_REQUEST naming the member */
export function refuseForeignExtras(extras: readonly Extra[]): void {
  for (const { name, json } of extras) {
    const found = unservable.find(([each]) => each === name);
    if (found !== undefined && !found[1].test(json)) {
      throw refused(`"${name}": ${json.slice(0, 40)} is not available for this model`, name);
    }
  }
}
