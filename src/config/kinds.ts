/** The closed lists of words of `uas.yaml`, and what of them this version can serve. */
import { CancelBilling, ModelType } from "../../gen/uas/inference/v1/model_pb.ts";

/** Every kind of vendor that a configuration may name, served by this version or not. */
export const knownKinds: readonly string[] = [
  "openai",
  "openai-compatible",
  "anthropic",
  "gemini",
  "replicate",
  "dashscope",
  "fal",
  "demo",
];

/** Every dialect that a configuration may name. */
export const knownDialects: readonly string[] = [
  "chat-completions",
  "responses",
  "messages",
  "gemini",
];

/** Every model type, by its word. */
export const modelTypes: ReadonlyMap<string, ModelType> = new Map([
  ["TEXT", ModelType.TEXT],
  ["IMAGE", ModelType.IMAGE],
  ["VIDEO", ModelType.VIDEO],
  ["AUDIO", ModelType.AUDIO],
]);

/** The word of a model type. */
export function modelTypeWord(type: ModelType): string {
  for (const [word, value] of modelTypes) if (value === type) return word;
  return "UNSPECIFIED";
}

/** What cancelled tasks cost, by its word. */
export const cancelBillings: ReadonlyMap<string, CancelBilling> = new Map([
  ["none", CancelBilling.NONE],
  ["upstream", CancelBilling.UPSTREAM],
]);

/** The word of what cancelled tasks cost. */
export function cancelBillingWord(billing: CancelBilling): string {
  for (const [word, value] of cancelBillings) if (value === billing) return word;
  return "none";
}

/** What this version can serve of a kind of vendor. */
export interface ServedKind {
  /** The dialects that it speaks, as words. */
  readonly dialects: readonly string[];
  readonly modelTypes: readonly ModelType[];
  /** Whether `base_url` must be given; where not, it has no address at all. */
  readonly needsBaseUrl: boolean;
  /** Whether `api_key` must be given. */
  readonly needsApiKey: boolean;
  /** Its own interface. Absent: it has none that this version serves. */
  readonly native?: object;
  /** What to do when the client leaves, where the configuration does not say. Default `grace`. */
  readonly onDisconnect?: "drain";
}

/** The kinds that this version can serve, by their words. */
export type ServedKinds = ReadonlyMap<string, ServedKind>;
