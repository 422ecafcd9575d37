/**
 * Only messages: differences between Anthropic's models, derived from their names, as Anthropic's
 * own SDKs do.
 */

/** The features of a model. */
export interface ModelTraits {
  /** Whether it can think at all. */
  readonly thinks: boolean;
  /** Whether it decides how much to think. */
  readonly adaptive: boolean;
  /** Whether it accepts a thinking budget. */
  readonly budgets: boolean;
  /** The mode that disables thinking: `disabled`, the lowest mode, or (`undefined`) none. */
  readonly rest: "disabled" | "between_tools" | undefined;
  /** Whether it takes an effort. */
  readonly effort: boolean;
  /** Whether it supports the effort `xhigh`. */
  readonly xhigh: boolean;
  /** Whether it takes `temperature`, `top_p` and `top_k`. */
  readonly sampling: boolean;
  /** Whether it takes system messages behind the first message; undefined if unknown. */
  readonly lateSystem: boolean | undefined;
  /** Whether it continues a final message of the assistant. */
  readonly prefill: boolean;
}

/** Assumed for unknown names: nothing beyond the style itself. */
const unknown: ModelTraits = {
  thinks: true,
  adaptive: true,
  budgets: true,
  rest: "disabled",
  effort: true,
  xhigh: true,
  sampling: true,
  lateSystem: undefined,
  prefill: true,
};

/** A date after the family is no version: `claude-opus-4-20250514`. */
const named = /claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;
/** Up to 3.7 the version came first. */
const namedBefore = /claude-(?:instant|v?(\d)(?:[-.](\d)(?!\d))?)/;

/** Derives the features from the vendor's model name, in the form of any cloud. */
export function traitsOf(model: string): ModelTraits {
  const [found, family = "", major = "", minor = "0"] = named.exec(model) ?? [];
  if (found === undefined) return traitsBefore(model);
  const version = Number(major) * 100 + Number(minor);
  const isFable = family === "fable" || family === "mythos";
  const isNewest = version >= 505;
  const isNew = version >= 500 || (family === "opus" && version >= 407);
  const canRest = !isFable && !(isNewest && family !== "haiku");
  const lowestMode = isNewest && family === "sonnet" ? "between_tools" : undefined;
  return {
    thinks: true,
    adaptive: version >= 406,
    budgets: !isNewest && !isFable,
    rest: canRest ? "disabled" : lowestMode,
    effort: version >= 406 || (family === "opus" && version >= 405),
    xhigh: isNew,
    sampling: !isNew,
    // Reports differ on Sonnet 5: as the user's text, no model refuses it.
    lateSystem: isNewest || isFable || (family === "opus" && version >= 408),
    prefill: version < 406,
  };
}

function traitsBefore(model: string): ModelTraits {
  const [found, major = "1", minor = "0"] = namedBefore.exec(model) ?? [];
  if (found === undefined) return unknown;
  const thinks = Number(major) * 100 + Number(minor) >= 307;
  const none = { adaptive: false, effort: false, xhigh: false, lateSystem: false };
  return { ...unknown, ...none, thinks, budgets: thinks };
}
