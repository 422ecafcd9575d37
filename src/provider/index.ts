/** The vendor kinds of this version. A new one is a folder and a line here. */
import type { ServedKinds } from "../config/kinds.ts";
import { vendorDialects, type VendorDialectId } from "../dialect/index.ts";
import { anthropic } from "./anthropic/index.ts";
import { cohere } from "./cohere/index.ts";
import { dashscope } from "./dashscope/index.ts";
import { demo } from "./demo/index.ts";
import { fal } from "./fal/index.ts";
import { gemini } from "./gemini/index.ts";
import { jina } from "./jina/index.ts";
import { openaiCompatible } from "./openai-compatible/index.ts";
import { openai } from "./openai/index.ts";
import { replicate } from "./replicate/index.ts";
import type { VendorKind } from "./vendor.ts";

export const vendorKinds: Readonly<Record<string, VendorKind>> = {
  anthropic,
  cohere,
  dashscope,
  demo,
  fal,
  gemini,
  jina,
  openai,
  "openai-compatible": openaiCompatible,
  replicate,
};

/** Features that each kind can serve, for the checks of the configuration. */
export const servedKinds: ServedKinds = new Map(
  Object.entries(vendorKinds).map(([name, kind]) => [
    name,
    {
      ...kind,
      dialects: kind.dialects.map((dialect) => vendorDialects[dialect as VendorDialectId].word),
    },
  ]),
);
