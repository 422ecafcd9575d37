/** Finds the public tokenizer of a model by the vendor's name of it. */

/** The tokenizers that the gateway includes. */
export type Encoding = "o200k_base" | "cl100k_base";

/** The tokenizer facts of a model family. */
export interface Family {
  readonly encoding: Encoding;
  /** The maximum tokens of an image. Default as in request-size.ts. */
  readonly imageTokens?: number;
}

/** The families by name; the first match counts. Dated and sized variants (`gpt-4o-2024-08-06`, `gpt-5-mini`, `gpt-5.2`)
 * belong to their family. */
const families: readonly (readonly [name: RegExp, family: Family])[] = [
  // A tile takes 5,667 tokens and the image 2,833 more; at most 8 tiles.
  [/^gpt-4o-mini(?![a-z])/, { encoding: "o200k_base", imageTokens: 48_200 }],
  [
    /^(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4|gpt-oss)(?![a-z0-9])/,
    { encoding: "o200k_base" },
  ],
  [/^(?:gpt-4|gpt-3\.5|gpt-35)(?![a-z0-9.])/, { encoding: "cl100k_base" }],
  [/^text-embedding-(?:3-|ada-002)/, { encoding: "cl100k_base" }],
];

/** The family of a model; `undefined`: its tokenizer is not public or not included. Names may begin with `openai/`, as
 * aggregators write them, or with `ft:` for fine-tuned models. */
export function familyOf(vendorModel: string): Family | undefined {
  const name = vendorModel.toLowerCase().replace(/^(?:openai\/)?(?:ft:)?/, "");
  return families.find(([pattern]) => pattern.test(name))?.[1];
}
