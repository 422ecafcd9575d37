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
  return section(
    {
      late_system: word(["in_place", "as_user", "at_top"]).optional(),
      developer_role:
        kind === "anthropic"
          ? absent("kind anthropic has no role developer; remove it")
          : acceptance,
      call_ids: word(["any", "unique", "alphanumeric_9"]).optional(),
      tool_results: word(["any", "paired"]).optional(),
      prefill: acceptance,
      blank_text: acceptance,
    },
    { about: quirkKeys },
  ).optional();
}

const quirkKeys = {
  late_system:
    "System text behind the first message of another role: it stays in place, becomes the user's text, or is merged into the first system message. With the last two, several system messages at the beginning are merged too. Default: `in_place`; for `anthropic` only if the [model takes it](styles.md#late-system-text), else `as_user`.",
  developer_role:
    "If refused, messages of the role `developer` are sent as `system`. Default: `refused` for `openai-compatible` and `dashscope`, else `accepted`.",
  call_ids:
    "Ids of tool calls: as they came; each unique; or unique, with 9 letters and digits (chat completions only). Default: `unique`.",
  tool_results:
    "If paired, a result that comes late stands behind its call, and several results of a call are one. Default: `paired`.",
  prefill:
    "If refused, the user's message `Continue.` follows a final message of the assistant (not in responses). Default: `accepted`; `refused` for Claude from 4.6 on.",
  blank_text:
    "If refused, texts of nothing but white space are left out, and white space at the end of a prefill. Default: `accepted`; `refused` for `anthropic`.",
};

/** The quirks of several sources; the last that sets one counts. Undefined if none is set. */
export function mergeQuirks(
  ...sources: readonly (VendorQuirks | undefined)[]
): VendorQuirks | undefined {
  const set = sources.flatMap((quirks) =>
    Object.entries(quirks ?? {}).filter(([, value]) => value !== undefined),
  );
  return set.length === 0 ? undefined : Object.fromEntries(set);
}
