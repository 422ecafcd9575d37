/** `quirks:` of a vendor. Each has a default for the style, the kind or the preset. */
import type { VendorQuirks } from "../core/vendor-quirks.ts";
import { word } from "./scalars.ts";
import { absent, section } from "./schema.ts";

/** The kinds of vendor that have quirks. */
const quirkKinds: ReadonlySet<string> = new Set([
  "openai",
  "openai-compatible",
  "anthropic",
  "dashscope",
]);

/** The schema of `quirks:`. @param kind `undefined`: not known, so that all are allowed */
export function quirksSchema(kind: string | undefined) {
  if (kind !== undefined && !quirkKinds.has(kind)) {
    return absent(`only kinds ${[...quirkKinds].join(", ")} have quirks; remove it`);
  }
  const acceptance = word(["accepted", "refused"]).optional();
  return section({
    late_system: word(["in_place", "as_user", "at_top"]).optional(),
    developer_role:
      kind === "anthropic" ? absent("kind anthropic has no role developer; remove it") : acceptance,
    call_ids: word(["any", "unique", "alphanumeric_9"]).optional(),
    tool_results: word(["any", "paired"]).optional(),
    prefill: acceptance,
    blank_text: acceptance,
  }).optional();
}

/** The quirks of several sources; the last that sets one counts. Undefined if none is set. */
export function mergeQuirks(
  ...sources: readonly (VendorQuirks | undefined)[]
): VendorQuirks | undefined {
  const set = sources.flatMap((quirks) =>
    Object.entries(quirks ?? {}).filter(([, value]) => value !== undefined),
  );
  return set.length === 0 ? undefined : Object.fromEntries(set);
}
