/** The kinds of vendor that this version can serve. A new one is a file here and a line below. */
import { demo } from "./demo.ts";
import { openaiCompatible } from "./openai-compatible.ts";
import type { VendorKind } from "./vendor.ts";

export const vendorKinds: Readonly<Record<string, VendorKind>> = {
  demo,
  "openai-compatible": openaiCompatible,
};
