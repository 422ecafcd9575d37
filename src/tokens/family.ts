/**
 * Finds the public tokenizer of a model, and the tokens of its images, by the vendor's name of it.
 */

/** The tokenizers that the gateway includes. */
export type Encoding = "o200k_base" | "cl100k_base";

/** The tokenizer facts of a model family. */
export interface Family {
  readonly encoding: Encoding;
}

/**
 * The families by name; the first match counts. Dated and sized variants (`gpt-4o-2024-08-06`,
 * `gpt-5-mini`, `gpt-5.2`) belong to their family.
 */
const families: readonly (readonly [name: RegExp, family: Family])[] = [
  [
    /^(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4|gpt-oss)(?![a-z0-9])/,
    { encoding: "o200k_base" },
  ],
  [/^(?:gpt-4|gpt-3\.5|gpt-35)(?![a-z0-9.])/, { encoding: "cl100k_base" }],
  [/^text-embedding-(?:3-|ada-002)/, { encoding: "cl100k_base" }],
];

/** Cache of families by model name: names of routes, and few others. */
const known = new Map<string, Family | undefined>();

/** Maximum number of cached names. */
const knownMax = 10_000;

/** The family of a model; undefined if its tokenizer is not public or not included. */
export function familyOf(vendorModel: string): Family | undefined {
  const family = known.get(vendorModel);
  if (family !== undefined || known.has(vendorModel)) return family;
  const name = plainName(vendorModel);
  const found = families.find(([pattern]) => pattern.test(name))?.[1];
  if (known.size < knownMax) known.set(vendorModel, found);
  return found;
}

/**
 * The maximum tokens of an image with any model but gpt-4o-mini: Qwen takes 16,384 in high
 * resolution; GPT-5.4 and later 10,000 patches, and up to 1.62 tokens for each.
 */
export const imageTokensMax = 16_400;

/** The most tokens of an image, by the model's name. The first match counts. */
const imageTokens: readonly (readonly [name: RegExp, tokens: number])[] = [
  // A tile takes 5,667 tokens and the image 2,833 more; at most 8 tiles.
  [/^gpt-4o-mini(?![a-z])/, 48_200],
  // 8 tiles take 1,445 tokens, and 1,536 patches of small models 3,779; gpt-5.4 and later read
  // larger images.
  [/^(?:chatgpt|gpt-4o?|gpt-5(?!\.[4-9]|\.\d\d)|o[134])(?![a-z0-9])/, 5_000],
  // 2,576 pixels of Claude take 4,784 tokens; images of Gemini less than 2,300.
  [/^(?:[a-z.]*anthropic[./])?claude-|^(?:google\/)?gemini-/, 5_000],
];

/** The most tokens of an image with a model. */
export function imageTokensOf(vendorModel: string): number {
  const name = plainName(vendorModel);
  return imageTokens.find(([pattern]) => pattern.test(name))?.[1] ?? imageTokensMax;
}

/**
 * Names may begin with `openai/`, as aggregators write them, or with `ft:` for fine-tuned models.
 */
function plainName(vendorModel: string): string {
  return vendorModel.toLowerCase().replace(/^(?:openai\/)?(?:ft:)?/, "");
}
