/** The kinds of vendor that this version can serve. A new one is a file here and a line below. */
import type { ServedKinds } from "../config/kinds.ts";
import { vendorDialects, type VendorDialectId } from "../dialect/index.ts";
import { anthropic } from "./anthropic/index.ts";
import { dashscope } from "./dashscope/index.ts";
import { demo } from "./demo/index.ts";
import { fal } from "./fal/index.ts";
import { gemini } from "./gemini/index.ts";
import { openaiCompatible } from "./openai-compatible/index.ts";
import { openai } from "./openai/index.ts";
import { replicate } from "./replicate/index.ts";
import type { VendorKind } from "./vendor.ts";

export const vendorKinds: Readonly<Record<string, VendorKind>> = {
  anthropic,
  dashscope,
  demo,
  fal,
  gemini,
  openai,
  "openai-compatible": openaiCompatible,
  replicate,
};

/* What this version can serve, as the configuration's checks want to know it. */

/** What this version can serve of each kind of vendor, for the configuration's checks. */
export const servedKinds: ServedKinds = new Map(
  Object.entries(vendorKinds).map(([name, kind]) => [
    name,
    {
      ...kind,
      dialects: kind.dialects.map((dialect) => vendorDialects[dialect as VendorDialectId].word),
    },
  ]),
);
