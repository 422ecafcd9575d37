/** `models:` of a configuration: what customers can call, and the routes of each call. */
import type { z } from "zod";
import { CancelBilling, ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Parsed } from "./address.ts";
import type { DatedPrice, ModelConfig, RouteConfig } from "./config.ts";
import type { ConfigDocument, Path } from "./document.ts";
import { cancelBillings, modelTypeWord, modelTypes } from "./kinds.ts";
import { holdOutputTokensDefault } from "../core/limits.ts";
import { priceChangesSchema, type PricesSchema, pricesSchema } from "./price.ts";
import { listPricesOf, type PriceLists } from "./price-lists.ts";
import { serviceTiersSchema, withServiceTiers } from "./tier-prices.ts";
import type { ReferenceSource } from "./references.ts";
import { checkShares, retrySchema, shareAbout, shareKeys } from "./routing.ts";
import { duration, flag, positive, quote, text, word } from "./scalars.ts";
import { absent, always, choose, list, mapsOf, named, section, textAt } from "./schema.ts";
import { nearest } from "../core/suggest.ts";
import type { VendorEntry } from "./vendors.ts";

/** A model as the file has it. */
type WrittenModel = z.output<ReturnType<typeof modelSchema>>;

type TiersSchema = z.ZodOptional<ReturnType<typeof serviceTiersSchema>> | ReturnType<typeof absent>;
type Vendors = ReadonlyMap<string, VendorEntry>;

/**
 * The schema of the section.
 *
 * @param facts.vendors the names of `vendors:`, in error or not
 * @param facts.needsPrices false while prices are still to be imported
 */
export function modelsSchema(references: ReferenceSource, facts: ModelsFacts) {
  const model = choose(
    (input) => typeWords.find((type) => type === textAt(input, "type")),
    (type) => modelSchema(references, { ...facts, type }),
    [undefined, ...typeWords].map((type) => [{ type: type ?? false }, type]),
  );
  const fix = "add the models that customers can call";
  return named(model, { what: "models by name", fix, checkName }).meta({
    propertyNames: { pattern: modelName.source, maxLength: 200 },
  });
}

const typeWords = [...modelTypes.keys()];

const modelName = /^[A-Za-z0-9][A-Za-z0-9_.:@+-]*(\/[A-Za-z0-9_.:@+-]+)*$/;

/** A model name is part of paths (/v1/models/{modelId}) and of comma separated lists. */
function checkName(name: string): string | undefined {
  const isPlain = name.length <= 200 && modelName.test(name);
  const hasDots = name.split("/").some((segment) => segment === "." || segment === "..");
  if (isPlain && !hasDots) return undefined;
  const allowed = "letters, digits and . _ - : @ + with single slashes between, at most 200";
  return `${quote(name)} is not a model name: use ${allowed}`;
}

interface ModelsFacts {
  readonly vendors: readonly string[];
  readonly needsPrices: boolean;
}

/**
 * @param type as written; undefined means missing or not known; then nothing that depends on it is
 * checked
 */
function modelSchema(
  references: ReferenceSource,
  { vendors, needsPrices, type }: ModelsFacts & { readonly type: string | undefined },
) {
  const prices = pricesSchema(type);
  const tiers =
    type === undefined || type === "TEXT"
      ? serviceTiersSchema(priceChangesSchema(type)).optional()
      : absent("only TEXT models have prices per service tier; remove it");
  const tokens = positive(
    "add the maximum output tokens of one reply: the hold of a call depends on it",
  );
  return section(
    {
      type: word(typeWords, `name one of ${typeWords.join(", ")}`),
      name: text(references, 200).optional(),
      routes: routesSchema(references, { vendors, costs: pricesSchema(type, "cost"), tiers }),
      retry: retrySchema.optional(),
      fallback_models: list(text(references, 200), "model names")
        .superRefine(checkFallbacks, { when: always })
        .optional(),
      max_output_tokens: type === "TEXT" ? tokens : tokens.optional(),
      hold_output_tokens: positive().optional(),
      reasoning:
        type === undefined || type === "TEXT"
          ? flag().optional()
          : absent("only TEXT models reason; remove it"),
      file_stores:
        type === undefined || type === "TEXT"
          ? list(text(references, 200), "ids of stores")
              .min(1, { error: "name at least one store, or leave the key out" })
              .optional()
          : absent("only TEXT models search files; remove it"),
      max_tool_calls:
        type === undefined || type === "TEXT"
          ? positive().optional()
          : absent("only TEXT models have tools; remove it"),
      deadline: duration().optional(),
      min_seconds: hasLength(type)
        ? positive().optional()
        : absent(`only VIDEO and AUDIO models have a length; remove it`),
      cancel_billing: word([...cancelBillings.keys()]).optional(),
      price: needsPrices ? prices : prices.optional(),
      tiers,
      price_lists: named(prices, {
        what: "prices by the name of a price list",
        fix: "",
        checkName: () => undefined,
      }).optional(),
    },
    { about: modelKeys },
  );
}

const modelKeys = {
  type: "What the model generates.",
  name: "Display name. Default: the name of the model.",
  routes:
    "Vendors, and their names of the model. Without weights and priorities, each is a [backup](routing.md) of those before it.",
  retry: "How often a failed call is tried again.",
  fallback_models:
    "Other models of the same type that [take a call](routing.md#fallback-models) when all routes fail, in order. Default: none.",
  max_output_tokens:
    "Maximum output tokens of one reply. A request without an output limit that is not streamed holds money for this many. Required for `TEXT`.",
  hold_output_tokens:
    "Output tokens that a stream without an output limit holds money for at first; the [hold grows](reliability.md#streams-without-a-limit) with the stream. Default: 2048; with `reasoning: true` `max_output_tokens`.",
  reasoning:
    "`TEXT`: whether the model reasons before it answers. Its replies are read to their end after a [disconnect](money.md#when-a-client-disconnects). Default: `false`.",
  file_stores:
    "`TEXT`: ids of OpenAI's vector stores that every caller of the model may search with `file_search`; all others are refused. Default: none.",
  max_tool_calls:
    "`TEXT`: maximum calls of each tool that the vendor runs, if the request sets no limit. They are held; more are never charged. Default: 10.",
  deadline:
    "Maximum duration of a [task](tasks.md), from the first request to its vendor. Then it fails with `task_timeout`, free of charge. [Native jobs](native.md#jobs) have none. Default: `30m`.",
  min_seconds:
    "`VIDEO`, `AUDIO`: minimum length of a result. It is held, and [charged if the length is not known](native.md#length-of-a-video). Default: not known.",
  cancel_billing:
    "Charge for cancelled tasks: `none`, or [the usage that the vendor reports](tasks.md#cancelled-tasks). Default: `upstream` for `TEXT`, else `none`.",
  price:
    "Prices in US dollars. A list has [prices with their dates](configuration.md#prices-that-change).",
  price_lists:
    "Prices in [price lists](keys-and-accounts.md#price-lists), instead of the price with the list's markup.",
  tiers: "`TEXT`: prices of [service tiers](configuration.md#service-tiers). Default: none.",
};

function hasLength(type: string | undefined): boolean {
  return type === undefined || type === "VIDEO" || type === "AUDIO";
}

function routesSchema(
  references: ReferenceSource,
  {
    vendors,
    costs,
    tiers,
  }: {
    readonly vendors: readonly string[];
    readonly costs: PricesSchema;
    readonly tiers: TiersSchema;
  },
) {
  const route = section(
    {
      vendor: text(references, 64, {
        fix: "name one of vendors:",
        parse: (name) => parseVendor(name, vendors),
      }),
      model: text(references, 300, { fix: "add the vendor's own name of the model" }),
      limit_parameter: word(["max_tokens", "max_completion_tokens"]).optional(),
      ...shareKeys(),
      max_context: positive().optional(),
      cost: costs.optional(),
      tiers,
    },
    { about: routeKeys },
  );
  const fix = "add routes: [{ vendor: …, model: … }], the vendor and its own name of the model";
  return list(route, "routes { vendor, model }", fix)
    .min(1, { error: "name at least one route" })
    .superRefine(checkRoutes, { when: always })
    .superRefine(checkShares, { when: always });
}

const routeKeys = {
  ...shareAbout,
  vendor: "A name of `vendors`.",
  model: "The vendor's name of the model.",
  limit_parameter:
    "The member that limits a reply at this route, whichever the client used. Default: that of its kind or preset.",
  max_context:
    "The longest request that the route takes, including its reply, in tokens. Requests with documents, video or audio [hold this many](tokens.md#images-documents-audio). Default: any; such requests hold 1048576.",
  cost: "What the vendor charges you: [vendor costs](configuration.md#vendor-costs). Default: not known.",
  tiers: "What the vendor charges you per service tier.",
};

function parseVendor(value: string, vendors: readonly string[]): Parsed<string> {
  if (vendors.includes(value)) return { value };
  const near = nearest(value, vendors);
  const guess = near === undefined ? "" : `, did you mean "${near}"?`;
  const have = vendors.length === 0 ? "none" : vendors.join(", ");
  return { problem: `no vendor ${quote(value)}${guess} (have: ${have})` };
}

function checkRoutes(routes: unknown, context: z.core.$RefinementCtx): void {
  const seen = new Set<string>();
  for (const [index, { vendor, model }] of mapsOf(routes)) {
    if (typeof vendor !== "string" || typeof model !== "string") continue;
    const id = JSON.stringify([vendor, model]);
    const message = "this route is listed twice; keep one";
    if (seen.has(id)) context.addIssue({ code: "custom", path: [index], message });
    seen.add(id);
  }
}

function checkFallbacks(names: unknown, context: z.core.$RefinementCtx): void {
  const seen = new Set<unknown>();
  for (const [index, name] of Array.isArray(names) ? names.entries() : []) {
    const message = `${String(name)} is listed twice; keep one`;
    if (seen.has(name)) context.addIssue({ code: "custom", path: [index], message });
    seen.add(name);
  }
}

/** Reports fallback models that do not exist, generate something else, or are the model itself. */
export function checkFallbackModels(
  document: ConfigDocument,
  models: ReadonlyMap<string, WrittenModel>,
): void {
  for (const [key, { type, fallbackModels = [] }] of models) {
    for (const [index, name] of fallbackModels.entries()) {
      const problem = fallbackProblem({ key, type, name }, models);
      if (problem === undefined) continue;
      document.error(["models", key, "fallback_models", index], problem);
    }
  }
}

function fallbackProblem(
  { key, type, name }: { readonly key: string; readonly type: string; readonly name: string },
  models: ReadonlyMap<string, WrittenModel>,
): string | undefined {
  if (name === key) return "a model cannot replace itself; remove it";
  const other = models.get(name);
  if (other === undefined) {
    const near = nearest(name, [...models.keys()]);
    const guess = near === undefined ? "" : `, did you mean "${near}"?`;
    return `no model ${quote(name)}${guess}`;
  }
  if (other.type === type) return undefined;
  return `${quote(name)} is of type ${other.type}: only another ${type} model can take its calls`;
}

/**
 * The models of a valid file that this version can serve; the document gets warnings about the
 * others.
 */
export function servedModels(
  document: ConfigDocument,
  models: ReadonlyMap<string, WrittenModel>,
  { vendors, priceLists }: { readonly vendors: Vendors; readonly priceLists: PriceLists },
): ReadonlyMap<string, ModelConfig> {
  const served = new Map<string, ModelConfig>();
  for (const [key, written] of models) {
    const type = modelTypes.get(written.type) ?? ModelType.UNSPECIFIED;
    const routes = servedRoutes(document, key, { written, type, vendors });
    if (routes.length === 0) continue;
    warnOfFuture(document, ["models", key, "price"], written.price ?? []);
    served.set(key, modelConfig(key, written, { type, routes, priceLists }));
  }
  const message = "no model can be called: every call will answer 404";
  if (served.size === 0) document.warn(["models"], message);
  return served;
}

/**
 * Warns of a list whose first price is yet to come. An error would keep a gateway from starting
 * whose machine's clock is behind: it charges by the database's clock, which a file is read
 * without.
 */
function warnOfFuture(document: ConfigDocument, path: Path, prices: readonly DatedPrice[]): void {
  const [first] = prices;
  if (first === undefined || first.fromMs <= Date.now()) return;
  const message =
    "is in the future by this machine's clock, and this price applies until then too: put the current price before it, without from";
  document.warn([...path, 0, "from"], message);
}

function modelConfig(
  key: string,
  written: WrittenModel,
  {
    type,
    routes,
    priceLists,
  }: {
    readonly type: ModelType;
    readonly routes: readonly RouteConfig[];
    readonly priceLists: PriceLists;
  },
): ModelConfig {
  const { price, tiers } = written;
  const prices = price === undefined ? [] : withServiceTiers(price, tiers);
  const maxOutputTokens = written.maxOutputTokens ?? 0;
  // Hidden reasoning is in no text with which a hold could grow.
  const heldDefault = written.reasoning === true ? maxOutputTokens : holdOutputTokensDefault;
  const held = written.holdOutputTokens ?? heldDefault;
  return {
    key,
    name: written.name ?? key,
    type,
    routes,
    maxOutputTokens,
    holdOutputTokens: Math.min(held, maxOutputTokens),
    ...(written.retry && { retry: written.retry }),
    ...(written.fallbackModels && { fallbackModels: written.fallbackModels }),
    isReasoning: written.reasoning ?? false,
    ...(written.maxToolCalls !== undefined && { maxToolCalls: written.maxToolCalls }),
    ...(written.fileStores && { fileStores: written.fileStores }),
    deadlineMs: written.deadline,
    minSeconds: written.minSeconds,
    // The vendor of a text reads, and bills, the input at once; others bill what they finished.
    cancelBilling:
      cancelBillings.get(written.cancelBilling ?? "") ??
      (type === ModelType.TEXT ? CancelBilling.UPSTREAM : CancelBilling.NONE),
    prices,
    ...(priceLists.size > 0 &&
      prices.length > 0 && {
        listPrices: listPricesOf(prices, written.priceLists ?? new Map(), priceLists),
      }),
  };
}

function servedRoutes(
  document: ConfigDocument,
  key: string,
  model: { readonly written: WrittenModel; readonly type: ModelType; readonly vendors: Vendors },
): readonly RouteConfig[] {
  const routes = model.written.routes.map((written): RouteConfig => {
    const { vendor, model: name, weight, priority, maxContext, cost, tiers } = written;
    const entry = model.vendors.get(vendor);
    const limitParameter = written.limitParameter ?? entry?.limitParameter;
    return {
      vendor,
      model: name,
      ...(limitParameter !== undefined && { limitParameter }),
      ...(entry?.quirks && { quirks: entry.quirks }),
      ...(weight !== undefined && { weight }),
      ...(priority !== undefined && { priority }),
      ...(maxContext !== undefined && { maxContext }),
      ...(cost !== undefined && { costs: withServiceTiers(cost, tiers) }),
    };
  });
  const reasons = routes.map(({ vendor }) => unservedReason(vendor, model));
  const served = routes.filter((_route, index) => reasons[index] === undefined);
  if (served.length === 0) {
    const all = [...new Set(reasons)].join("; ");
    const message = `not listed, calls answer 404: this version cannot serve ${all} yet`;
    document.warn(["models", key], message);
    return [];
  }
  for (const [index, reason] of reasons.entries()) {
    const path = ["models", key, "routes", index];
    const message = `not used: this version cannot serve ${reason} yet`;
    if (reason !== undefined) document.warn(path, message);
    else warnOfFuture(document, [...path, "cost"], routes[index]?.costs ?? []);
  }
  return served;
}

function unservedReason(
  name: string,
  { type, vendors }: { readonly type: ModelType; readonly vendors: Vendors },
): string | undefined {
  const vendor = vendors.get(name);
  if (vendor?.unserved !== undefined) return `${vendor.unserved} (vendor ${quote(name)})`;
  if (vendor?.modelTypes.includes(type) === true) return undefined;
  return `${modelTypeWord(type)} models of vendor ${quote(name)}`;
}
