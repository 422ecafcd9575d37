/**
 * Features of a model besides its type, in the words of the contract's `Model.features`, in their
 * order there.
 */
export const modelFeatures = [
  "reasoning",
  "audio_input",
  "audio_output",
  "image_output",
  "web_search",
  "web_fetch",
  "code_execution",
  "file_search",
  "cache_storage",
] as const;

/** One of them. */
export type ModelFeature = (typeof modelFeatures)[number];
