/** How the models of Anthropic differ in what they take, by their names: their own SDKs go by these, too. */

/** What a model takes. */
export interface ModelTraits {
  /** Whether it can think at all. */
  readonly thinks: boolean;
  /** Whether it decides itself how much to think. */
  readonly adaptive: boolean;
  /** Whether it takes a budget to think with. */
  readonly budgets: boolean;
  /** What asks it not to think: that, the least it has, or (`undefined`) nothing does. */
  readonly rest: "disabled" | "between_tools" | undefined;
  /** Whether it takes an effort. */
  readonly effort: boolean;
  /** Whether it knows the effort `xhigh`. */
  readonly xhigh: boolean;
  /** Whether it takes `temperature`, `top_p` and `top_k`. */
  readonly sampling: boolean;
}

/** What is assumed of names that tell nothing: no more than that the vendor speaks this style. */
const unknown: ModelTraits = {
  thinks: true,
  adaptive: true,
  budgets: true,
  rest: "disabled",
  effort: true,
  xhigh: true,
  sampling: true,
};

/** A date that follows the family is no version: `claude-opus-4-20250514`. */
const named = /claude-(opus|sonnet|haiku|fable)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;
/** Up to 3.7 the version came first. */
const namedBefore = /claude-(?:instant|v?(\d)(?:[-.](\d)(?!\d))?)/;

/** Reads them from the vendor's name of the model, in whatever form a cloud has it. */
export function traitsOf(model: string): ModelTraits {
  const [found, family = "", major = "", minor = "0"] = named.exec(model) ?? [];
  if (found === undefined) return traitsBefore(model);
  const version = Number(major) * 100 + Number(minor);
  const isFable = family === "fable";
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
  };
}

function traitsBefore(model: string): ModelTraits {
  const [found, major = "1", minor = "0"] = namedBefore.exec(model) ?? [];
  if (found === undefined) return unknown;
  const thinks = Number(major) * 100 + Number(minor) >= 307;
  return { ...unknown, thinks, adaptive: false, budgets: thinks, effort: false, xhigh: false };
}
