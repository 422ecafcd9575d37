/** Price lists of genai-prices: the data of the npm package, and its `data.json` as a file. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { calcPrice, findProvider, type MatchLogic } from "@pydantic/genai-prices";
import {
  checkLimits,
  type ModelFacts,
  PriceRefusal,
  type PriceSource,
  type SourceBand,
  type SourceEntry,
  type SourcePrice,
  tierLimit,
} from "./source.ts";

type FindProvider = (id: string) => JsonObject | undefined;

/**
 * The data that comes with the npm package. Nothing is downloaded: of the package only its look-up
 * and its matching are used, never what updates its data.
 */
export function bundledSource(): PriceSource {
  const main = createRequire(import.meta.url).resolve("@pydantic/genai-prices");
  const manifest = parseExactJson(readFileSync(join(dirname(main), "../package.json"), "utf8"));
  // The shortest text of a binary number of the package is the decimal that its authors wrote.
  const find: FindProvider = (providerId) =>
    objectOf(parseExactJson(JSON.stringify(findProvider({ providerId }) ?? null)));
  const version = textOf(objectOf(manifest)?.["version"]) ?? "of unknown version";
  return sourceOf(`genai-prices (@pydantic/genai-prices ${version})`, find);
}

/** A `data.json` that the operator downloaded. */
export function genaiPricesFile(title: string, providers: readonly JsonObject[]): PriceSource {
  return sourceOf(title, (id) => providers.find((each) => each["id"] === id));
}

function sourceOf(title: string, findById: FindProvider): PriceSource {
  const find = (provider: string, model: string): SourceEntry | undefined => {
    const found = findById(provider);
    if (found === undefined) return undefined;
    const own = findModel(found, model);
    if (own !== undefined) return own;
    // Clouds that resell other companies' models name those here: `azure` has `openai`, for
    // example.
    for (const id of listOf(found["fallback_model_providers"])) {
      const fallback = findById(String(id));
      const entry = fallback && findModel(fallback, model);
      if (entry !== undefined) return entry;
    }
    return undefined;
  };
  const names = (provider: string): readonly string[] =>
    listOf(findById(provider)?.["models"]).flatMap((model) => {
      const { id, deprecated } = objectOf(model) ?? {};
      return typeof id === "string" && deprecated !== true ? [id] : [];
    });
  return { format: "genai-prices", title, find, names };
}

function findModel(provider: JsonObject, name: string): SourceEntry | undefined {
  const models = listOf(provider["models"]).map((each) => objectOf(each) ?? {});
  const exact = models.find((each) => each["id"] === name);
  const found = exact ?? models[matchByRule(models, name)];
  if (found === undefined) return undefined;
  const id = textOf(found["id"]) ?? "";
  const match = exact === undefined ? `rule ${ruleText(found["match"])}` : "same name";
  const contextTokens = countOf(found["context_window"]);
  return {
    name: `${String(provider["id"])}/${id}`,
    match,
    prices: pricesOf(id, found["prices"]),
    facts: contextTokens === undefined ? {} : { contextTokens },
  };
}

/** A number of tokens; undefined for anything else. */
function countOf(value: unknown): number | undefined {
  const isCount = typeof value === "string" && /^[1-9]\d{0,8}$/.test(value);
  return isCount ? Number(value) : undefined;
}

/** The place of the model whose rule matches; -1 if none does. */
function matchByRule(models: readonly JsonObject[], name: string): number {
  // Without their prices, so that a price that cannot be read is refused here and not there.
  const bare = models.map(({ match }, index) => ({
    id: String(index),
    match: match as MatchLogic,
    prices: {},
  }));
  const provider = { id: "", name: "", api_pattern: "", models: bare };
  try {
    return Number(calcPrice({}, name, { provider })?.model.id ?? -1);
  } catch (error) {
    const reason = `a matching rule of the list cannot be read: ${String(error)}`;
    throw new PriceRefusal("refused", reason, "download the list again");
  }
}

/** A rule in words: `starts with "claude-sonnet-4-5" or equals "claude-sonnet"`. */
function ruleText(rule: unknown): string {
  const [[word, value] = ["", undefined]] = Object.entries(objectOf(rule) ?? {});
  if (Array.isArray(value)) return value.map(ruleText).join(` ${word} `);
  return `${word.replaceAll("_", " ")} ${JSON.stringify(value)}`;
}

/** The prices of a model: one, or a list whose last one counts whose condition holds. */
function pricesOf(id: string, prices: unknown): readonly SourcePrice[] {
  const single = objectOf(prices);
  if (single !== undefined) return [{ fromMs: -Infinity, bands: bandsOf(single) }];
  const list = listOf(prices).map((each) => objectOf(each) ?? {});
  const found = list.map(({ constraint, prices: given }, index) => ({
    fromMs: beginning(id, objectOf(constraint), index === 0),
    bands: bandsOf(objectOf(given) ?? {}),
  }));
  if (found.length === 0) throw unreadable(id);
  if (found.some(({ fromMs }, index) => fromMs <= (found[index - 1]?.fromMs ?? Number.NaN))) {
    const reason = `the dated prices of ${id} are not in order`;
    throw new PriceRefusal("conflicting", reason, "write the cost by hand");
  }
  return found;
}

/** From when a price counts. */
function beginning(id: string, constraint: JsonObject | undefined, isFirst: boolean): number {
  if (constraint === undefined || isFirst) return -Infinity;
  if ("start_time" in constraint) {
    throw new PriceRefusal(
      "conflicting",
      `the prices of ${id} depend on the time of day, which uas.yaml cannot express`,
      "write the highest of them by hand",
    );
  }
  const date = textOf(constraint["start_date"]) ?? "";
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(`${date}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(ms)) throw unreadable(id);
  return ms;
}

function unreadable(id: string): PriceRefusal {
  return new PriceRefusal(
    "refused",
    `the prices of ${id} cannot be read`,
    "download the list again",
  );
}

/** A field is a number, or a number with what it becomes in longer calls. */
function bandsOf(prices: JsonObject): readonly SourceBand[] {
  const fields = Object.entries(prices);
  const limits = fields.flatMap(([, value]) => tiersOf(value).map(({ above }) => above));
  const sorted = [...new Set([0, ...limits])].toSorted((a, b) => a - b);
  return sorted.map((above) => ({
    above,
    fields: new Map(fields.map(([field, value]) => [field, valueAbove(value, above)])),
  }));
}

function valueAbove(value: unknown, above: number): unknown {
  const tier = tiersOf(value).findLast((each) => each.above <= above);
  if (tier !== undefined) return tier.price;
  return objectOf(value) === undefined ? value : objectOf(value)?.["base"];
}

function tiersOf(value: unknown): readonly { above: number; price: unknown }[] {
  const tiers = listOf(objectOf(value)?.["tiers"])
    .map((each) => objectOf(each) ?? {})
    .map(({ start, price }) => ({ above: tierLimit(start), price }));
  checkLimits(tiers);
  return tiers.toSorted((a, b) => a.above - b.above);
}

/** The members of `cost` that are no prices. */
const tierMembers: ReadonlySet<string> = new Set(["tiers", "tier", "context_over_200k"]);

/** An `api.json`. Models are found by their exact name: the list has no matching rules. */
export function modelsDevFile(title: string, providers: JsonObject): PriceSource {
  const find = (provider: string, model: string): SourceEntry | undefined => {
    const models = objectOf(memberOf(objectOf(memberOf(providers, provider)), "models"));
    const found = objectOf(memberOf(models, model));
    if (found === undefined) return undefined;
    const cost = objectOf(found["cost"]);
    if (cost === undefined) {
      const reason = `the list has ${provider}/${model}, but no price for it`;
      throw new PriceRefusal("missing", reason, "write the cost by hand");
    }
    const prices = [{ fromMs: -Infinity, bands: modelsDevBands(cost) }];
    return {
      name: `${provider}/${model}`,
      match: "same name",
      prices,
      facts: modelsDevFacts(found),
    };
  };
  const names = (provider: string): readonly string[] =>
    Object.keys(objectOf(memberOf(objectOf(memberOf(providers, provider)), "models")) ?? {});
  return { format: "models.dev", title, find, names };
}

function modelsDevFacts(model: JsonObject): ModelFacts {
  const { context, output } = objectOf(model["limit"]) ?? {};
  const kinds = objectOf(model["modalities"])?.["output"];
  const contextTokens = countOf(context);
  const maxOutputTokens = countOf(output);
  return {
    ...(contextTokens !== undefined && { contextTokens }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(typeof model["reasoning"] === "boolean" && { isReasoning: model["reasoning"] }),
    ...(Array.isArray(kinds) && { isText: kinds.every((kind) => kind === "text") }),
  };
}

/** A member by a name that comes from outside: never one that every object inherits. */
function memberOf(object: JsonObject | undefined, name: string): unknown {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

function modelsDevBands(cost: JsonObject): readonly SourceBand[] {
  const base = { above: 0, fields: fieldsOf(cost) };
  const tiers = tierObjects(cost).map(tierBand);
  for (const { above, fields } of tiers) {
    // Prices that the list omits in a tier may be higher there, too.
    const left = [...base.fields.keys()].filter((field) => !fields.has(field));
    if (left.length > 0) {
      const reason = `the tier above ${above} tokens has no price for ${left.join(", ")}`;
      throw new PriceRefusal("conflicting", reason, "write the cost by hand");
    }
  }
  checkLimits(tiers);
  return [base, ...tiers.toSorted((a, b) => a.above - b.above)];
}

/**
 * `tiers` has the exact limits. Older lists have only `context_over_200k`, which repeats `tiers` if
 * both exist.
 */
function tierObjects(cost: JsonObject): readonly JsonObject[] {
  if (cost["tiers"] !== undefined) return listOf(cost["tiers"]).map((each) => objectOf(each) ?? {});
  const old = objectOf(cost["context_over_200k"]);
  return old === undefined ? [] : [{ ...old, tier: { type: "context", size: "200000" } }];
}

function tierBand(tier: JsonObject): SourceBand {
  const { type = "context", size } = objectOf(tier["tier"]) ?? {};
  if (type !== "context") {
    const reason = `a tier depends on ${String(type)}, which uas.yaml cannot express`;
    throw new PriceRefusal("conflicting", reason, "write the cost by hand");
  }
  return { above: tierLimit(size), fields: fieldsOf(tier) };
}

function fieldsOf(cost: JsonObject): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(cost).filter(([field]) => !tierMembers.has(field)));
}

/** JSON whose numbers stay as they are written: no digit of a price is lost. */

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Parses JSON. Numbers become strings with their exact digits.
 *
 * @throws SyntaxError if it is not JSON
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" ? (context?.source ?? String(value)) : value,
  );
}

/** The value if it is a JSON object. */
export function objectOf(value: unknown): JsonObject | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : undefined;
}

/** Returns the entries of a JSON array; an empty list for other values. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value if it is text. */
function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
