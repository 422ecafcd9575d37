/** The kinds of vendor that this version can serve. A new one is a file here and a line below. */
import { anthropic } from "./anthropic.ts";
import { dashscope } from "./dashscope.ts";
import { demo } from "./demo.ts";
import { fal } from "./fal.ts";
import { gemini } from "./gemini.ts";
import { openaiCompatible } from "./openai-compatible.ts";
import { openai } from "./openai.ts";
import { replicate } from "./replicate.ts";
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
