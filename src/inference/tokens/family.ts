/** Which tokenizer a vendor's model uses, as far as it is public: told by the vendor's own name of the model. */

/** The tokenizers that the gateway has. */
export type Encoding = "o200k_base" | "cl100k_base";

/** What is known of a model. */
export interface Family {
  readonly encoding: Encoding;
  /** The most tokens that a picture takes, where it is not as in media-tokens.ts. */
  readonly imageTokens?: number;
}

/** Names may be led by `openai/`, as aggregators write them, or be of a fine-tuned model (`ft:gpt-4o:…`). Dated
 * and sized variants (`gpt-4o-2024-08-06`, `gpt-5-mini`, `gpt-5.2`) are of the family. First match counts. */
const families: readonly (readonly [name: RegExp, family: Family])[] = [
  // A tile is 5,667 tokens and the picture 2,833 more; at most 8 tiles.
  [/^gpt-4o-mini(?![a-z])/, { encoding: "o200k_base", imageTokens: 48_200 }],
  [
    /^(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4|gpt-oss)(?![a-z0-9])/,
    { encoding: "o200k_base" },
  ],
  [/^(?:gpt-4|gpt-3\.5|gpt-35)(?![a-z0-9.])/, { encoding: "cl100k_base" }],
  [/^text-embedding-(?:3-|ada-002)/, { encoding: "cl100k_base" }],
];

/** The family; `undefined`: its tokenizer is not public, or not known here. */
export function familyOf(vendorModel: string): Family | undefined {
  const name = vendorModel.toLowerCase().replace(/^(?:openai\/)?(?:ft:)?/, "");
  return families.find(([pattern]) => pattern.test(name))?.[1];
}
