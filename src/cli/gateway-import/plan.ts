/** Turns another gateway's deployments into the vendors and models of `uas.yaml`. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { DatedPrice, PriceConfig } from "../../config/config.ts";
import { modelTypeWord, type ServedKinds } from "../../config/kinds.ts";
import { defaultAddress, presets } from "../../config/presets.ts";
import { priceUnits } from "../../config/price-units.ts";
import { namesUnit } from "../../config/unit-prices.ts";
import { pricesWithMargin } from "../price-import/customer-prices.ts";
import type { MarginPpm } from "../price-import/decimal.ts";
import { newModels, outputLimit } from "../price-import/new-models.ts";
import { readQuote } from "../price-import/quote.ts";
import { PriceRefusal, type PriceSource } from "../price-import/source.ts";
import { type ListedVendor, providerOf } from "../price-import/vendor-names.ts";
import type { Deployment, ImportNote, ImportSource, ListedPrice, Upstream } from "./source.ts";
import { type DeploymentGroup, ImportedVendors, type ImportedVendor } from "./vendors.ts";

/** Options of {@link planImport}. */
export interface PlanOptions {
  readonly list: PriceSource;
  readonly marginPpm: MarginPpm;
  readonly maxOutputTokens: number | undefined;
  readonly kinds: ServedKinds;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** A route of an imported model. */
export interface ImportedRoute {
  readonly vendor: string;
  readonly model: string;
  readonly weight: number;
  readonly priority: number;
  /** Undefined if the cost is not known. */
  readonly cost: readonly DatedPrice[] | undefined;
}

/** An imported model. */
export interface ImportedModel {
  readonly key: string;
  readonly type: ModelType;
  readonly maxOutputTokens: number | undefined;
  readonly routes: readonly ImportedRoute[];
  readonly fallbacks: readonly string[];
  /** Undefined if no price is known: it is written as a comment. */
  readonly prices: readonly DatedPrice[] | undefined;
}

/** The configuration to write, and the report. */
export interface ImportPlan {
  readonly vendors: readonly ImportedVendor[];
  readonly models: readonly ImportedModel[];
  readonly priceLists: ReadonlyMap<string, string>;
  readonly variables: ReadonlyMap<string, string>;
  readonly notes: readonly ImportNote[];
}

/** Plans an import. */
export function planImport(source: ImportSource, options: PlanOptions): ImportPlan {
  const notes: ImportNote[] = [...source.notes];
  const note = (place: string, text: string): void => void notes.push({ place, text });
  const vendors = new ImportedVendors();
  const planning: Planning = { options, note, vendors, guessed: new Set() };
  const all = source.deployments.flatMap((each) => expanded(each, planning));
  const models = [...modelGroups(all, planning)].map(([key, deployments]) =>
    plannedModel(key, deployments, planning),
  );
  const found = models.filter((model) => model !== undefined);
  const fallbacks = fallbacksOf(source, found, planning);
  const planned = found.map((model) => ({ ...model, fallbacks: fallbacks.get(model.key) ?? [] }));
  noteGuesses(planned, planning);
  const limitNotes = vendors.notes();
  return {
    vendors: vendors.all,
    models: planned,
    priceLists: source.priceLists,
    variables: usedVariables(source, vendors.all),
    notes: [...notes, ...limitNotes],
  };
}

interface Planning {
  readonly options: PlanOptions;
  readonly note: (place: string, text: string) => void;
  readonly vendors: ImportedVendors;
  /** Models whose output limit neither the file nor the list says. */
  readonly guessed: Set<string>;
}

function noteGuesses(models: readonly ImportedModel[], { guessed, note }: Planning): void {
  const names = models.filter(({ key, type }) => type === ModelType.TEXT && guessed.has(key));
  if (names.length === 0) return;
  const shown = names.map(({ key }) => key).join(", ");
  note("models", `max_output_tokens is a low guess, raise it: ${shown}`);
}

/** Variables that the result names. */
function usedVariables({ variables }: ImportSource, vendors: readonly ImportedVendor[]) {
  const used = new Set(
    vendors.flatMap(({ credentials, upstream }) => [
      ...credentials.map(({ variable }) => variable),
      ...(/\$\{env:([^}]*)\}/.exec(upstream.baseUrl ?? "")?.slice(1) ?? []),
    ]),
  );
  return new Map([...variables].filter(([name]) => used.has(name)));
}

/** A wildcard as the models of its vendor in the price list. */
function expanded(deployment: Deployment, planning: Planning): readonly Deployment[] {
  const { place, model, vendorModel, upstream } = deployment;
  if (!model.includes("*") && !vendorModel.includes("*")) return [deployment];
  const [start = "", end = ""] = vendorModel.split("*");
  try {
    const found = newModels(listed(upstream), {
      ...planning.options,
      source: planning.options.list,
    });
    const names = found.models
      .map(({ name }) => name)
      .filter((name) => name.startsWith(start) && name.endsWith(end));
    planning.note(
      place,
      `${model} is a wildcard: the ${names.length} models of ${planning.options.list.title} are written; remove those that you do not sell`,
    );
    return names.map((name) => ({
      ...deployment,
      model: model.replace("*", name.slice(start.length, name.length - end.length)),
      vendorModel: name,
    }));
  } catch (error) {
    if (!(error instanceof PriceRefusal)) throw error;
    planning.note(place, `${model} is a wildcard, and ${error.message}: add its models by hand`);
    return [];
  }
}

/** An upstream as price lists find it. */
function listed({ preset, kind, baseUrl }: Upstream): ListedVendor {
  const known = presets.get(preset ?? "");
  const vendorKind = known?.kind ?? kind ?? "";
  const address = baseUrl ?? known?.baseUrl ?? defaultAddress(vendorKind);
  return { name: preset ?? vendorKind, kind: vendorKind, baseUrl: address };
}

const modelName = /^[A-Za-z0-9][A-Za-z0-9_.:@+-]*(\/[A-Za-z0-9_.:@+-]+)*$/;

function modelGroups(
  deployments: readonly Deployment[],
  { note }: Planning,
): ReadonlyMap<string, readonly Deployment[]> {
  const groups = new Map<string, Deployment[]>();
  for (const deployment of deployments) {
    const key = nameOf(deployment.model);
    if (key === undefined || deployment.vendorModel.length > 300) {
      note(deployment.place, "its name is not a model name here: left out; add it by hand");
      continue;
    }
    if (key !== deployment.model) note(deployment.place, `the model is named ${key} here`);
    groups.set(key, [...(groups.get(key) ?? []), deployment]);
  }
  return groups;
}

/** A model name with dashes for characters that it cannot have; undefined if that is none. */
function nameOf(written: string): string | undefined {
  const name = written.replace(/[^A-Za-z0-9_.:@+/-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  const hasDots = name.split("/").some((segment) => segment === "." || segment === "..");
  return modelName.test(name) && name.length <= 200 && !hasDots ? name : undefined;
}

function plannedModel(
  key: string,
  deployments: readonly Deployment[],
  planning: Planning,
): ImportedModel | undefined {
  const type = deployments.find((each) => each.type !== undefined)?.type ?? guessedType(key);
  const served = deployments.filter((deployment) => isServed(deployment, type, planning));
  const groups = routeGroups(served);
  const [first] = groups;
  if (first === undefined) return undefined;
  const routes = groups.map((group) => plannedRoute(group, type, planning));
  const limit = first.deployments[0].maxOutputTokens ?? listedLimit(key, first, planning);
  return {
    key,
    type,
    maxOutputTokens: type === ModelType.TEXT ? limit : undefined,
    routes,
    fallbacks: [],
    prices: pricesOf({ key, type, served, routes }, planning),
  };
}

/** The type by the name, if the file does not say it. */
function guessedType(name: string): ModelType {
  if (/rerank/i.test(name)) return ModelType.RERANK;
  if (/embed|bge-/i.test(name)) return ModelType.EMBEDDING;
  if (/moderation/i.test(name)) return ModelType.MODERATION;
  if (/dall-e|gpt-image|imagen|flux|stable-diffusion|seedream/i.test(name)) return ModelType.IMAGE;
  if (/^tts-|-tts|whisper|transcribe/i.test(name)) return ModelType.AUDIO;
  if (/sora|veo-|seedance|kling/i.test(name)) return ModelType.VIDEO;
  return ModelType.TEXT;
}

/** Whether the vendor's kind serves the type; notes if not. */
function isServed(
  { upstream, place, model }: Deployment,
  type: ModelType,
  { options, note }: Planning,
): boolean {
  const preset = presets.get(upstream.preset ?? "");
  const kind = preset?.kind ?? upstream.kind ?? "";
  const types = options.kinds.get(kind)?.modelTypes ?? [];
  const canText = (options.kinds.get(kind)?.dialects.length ?? 0) > 0 || type !== ModelType.TEXT;
  const canServe = types.includes(type) && (preset?.modelTypes.includes(type) ?? true) && canText;
  const name = upstream.preset ?? kind;
  const text = `${model} as ${modelTypeWord(type)} is not served at ${name}: left out`;
  if (!canServe) note(place, text);
  return canServe;
}

/** Deployments by their vendor and its model, with shares that are valid. */
function routeGroups(deployments: readonly Deployment[]): readonly DeploymentGroup[] {
  const ranks = [...new Set(deployments.map(({ priority }) => priority))].toSorted((a, b) => a - b);
  const scaled = withWholeWeights(deployments);
  const groups = new Map<string, [Deployment, ...Deployment[]]>();
  for (const deployment of scaled) {
    const { upstream, vendorModel } = deployment;
    const id = JSON.stringify([upstream, vendorModel, deployment.keys.length > 0]);
    const ranked = { ...deployment, priority: ranks.indexOf(deployment.priority) };
    const known = groups.get(id);
    if (known === undefined) groups.set(id, [ranked]);
    else known.push(ranked);
  }
  return [...groups.values()].map((members) => ({
    deployments: members,
    weight: Math.min(
      members.reduce((sum, { weight = 1 }) => sum + weight, 0),
      1_000_000,
    ),
    priority: Math.min(...members.map(({ priority }) => priority)),
  }));
}

/** Weights as whole numbers of at least 1, in about their ratio. */
function withWholeWeights(deployments: readonly Deployment[]): readonly Deployment[] {
  const weights = deployments.map(({ weight = 0 }) => weight);
  const isWhole = weights.every((weight) => Number.isInteger(weight) && weight <= 10_000);
  const largest = Math.max(...weights);
  const factor = isWhole ? 1 : 100 / largest;
  return deployments.map((deployment) => ({
    ...deployment,
    weight: Math.max(1, Math.round((deployment.weight ?? 0) * factor)),
  }));
}

function plannedRoute(group: DeploymentGroup, type: ModelType, planning: Planning): ImportedRoute {
  const vendor = planning.vendors.vendorOf(group);
  const { weight, priority } = group;
  const [{ vendorModel: model }] = group.deployments;
  return { vendor: vendor.name, model, weight, priority, cost: costOf(group, type, planning) };
}

/** The cost in the file, else in the price list; undefined if neither has it. */
function costOf(
  { deployments }: DeploymentGroup,
  type: ModelType,
  { options }: Planning,
): readonly DatedPrice[] | undefined {
  const [{ upstream, vendorModel }] = deployments;
  const given = deployments.find(({ cost }) => cost !== undefined)?.cost;
  return attempt(() => {
    if (given !== undefined) return quoted(given, type, options.nowMs);
    const entry = options.list.find(
      providerOf(listed(upstream), options.list.format).id,
      vendorModel,
    );
    if (entry === undefined) return undefined;
    const { format } = options.list;
    const { prices, free } = readQuote(entry, { format, type, nowMs: options.nowMs });
    return free.length > 0 ? undefined : prices;
  });
}

function quoted(price: ListedPrice, type: ModelType, nowMs: number): readonly DatedPrice[] {
  const prices = [{ fromMs: -Infinity, bands: [{ above: 0, fields: price }] }];
  const entry = { name: "the imported file", match: "same name", prices };
  return readQuote(entry, { format: "genai-prices", type, nowMs }).prices;
}

/** The result; undefined if a price is refused. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PriceRefusal) return undefined;
    throw error;
  }
}

function listedLimit(
  key: string,
  { deployments }: DeploymentGroup,
  { options, guessed }: Planning,
): number {
  const [{ upstream, vendorModel }] = deployments;
  const { list, maxOutputTokens } = options;
  const facts = attempt(
    () => list.find(providerOf(listed(upstream), list.format).id, vendorModel)?.facts,
  );
  const isKnown = facts?.maxOutputTokens !== undefined || maxOutputTokens !== undefined;
  if (!isKnown) guessed.add(key);
  return outputLimit(facts ?? {}, maxOutputTokens);
}

interface Priced {
  readonly key: string;
  readonly type: ModelType;
  readonly served: readonly Deployment[];
  readonly routes: readonly ImportedRoute[];
}

function pricesOf(
  { key, type, served, routes }: Priced,
  { options, note }: Planning,
): readonly DatedPrice[] | undefined {
  const given = served.find(({ price }) => price !== undefined)?.price;
  const costs = routes.flatMap(({ cost }) => (cost === undefined ? [] : [cost]));
  const prices = attempt(() => {
    if (given !== undefined) return quoted(given, type, options.nowMs);
    if (costs.length === 0) return undefined;
    const known = type === ModelType.TEXT ? withSameUnits(costs) : costs;
    return pricesWithMargin(known, options.marginPpm);
  });
  if (prices === undefined) {
    note(`models.${key}`, "no price is known: it is a comment below models; add its price there");
  } else if (given === undefined && costs.length < routes.length) {
    note(`models.${key}`, "the cost of a route is not known: its price is that of the others");
  }
  return prices;
}

/**
 * Costs of text with the units of each other, such as web searches, at no cost: the price is the
 * highest of each unit, and a call is charged a unit only if it uses it.
 */
function withSameUnits(costs: readonly (readonly DatedPrice[])[]) {
  const prices = costs.flat().map(({ price }) => price);
  const units = priceUnits.filter(
    ({ key, whole }) =>
      whole === undefined && key !== "request" && prices.some((price) => namesUnit(price, key)),
  );
  const none = Object.fromEntries(units.map(({ key }) => [key, 0n])) as PriceConfig;
  return costs.map((dated) =>
    dated.map(({ fromMs, price }) => ({ fromMs, price: filled(none, price) })),
  );
}

function filled(none: PriceConfig, price: PriceConfig): PriceConfig {
  const given = Object.entries(price).filter(([, nanos]) => nanos !== undefined);
  return { ...price, ...none, ...(Object.fromEntries(given) as PriceConfig) };
}

/** Fallbacks that the configuration can have; notes others. */
function fallbacksOf(
  { fallbacks }: ImportSource,
  models: readonly ImportedModel[],
  { note }: Planning,
): ReadonlyMap<string, readonly string[]> {
  const types = new Map(
    models.filter(({ prices }) => prices !== undefined).map(({ key, type }) => [key, type]),
  );
  return new Map(
    [...fallbacks].map(([model, names]) => {
      const key = nameOf(model) ?? "";
      const others = [...new Set(names.map(nameOf))].filter((name) => name !== key);
      const [used, unused] = partition(others, (name) => {
        return name !== undefined && types.has(key) && types.get(name) === types.get(key);
      });
      if (unused.length > 0 && !key.includes("*")) {
        const shown = unused.map((name) => name ?? "?").join(", ");
        note(`fallbacks.${key}`, `${shown}: not imported, without a price, or of another type`);
      }
      return [key, used.filter((name) => name !== undefined)];
    }),
  );
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): readonly [T[], T[]] {
  return [items.filter((item) => isFirst(item)), items.filter((item) => !isFirst(item))];
}
