/** Compares the costs and prices of a configuration with price lists. */
import type {
  Config,
  DatedPrice,
  ModelConfig,
  PriceConfig,
  RouteConfig,
  VendorConfig,
} from "../../config/config.ts";
import { priceUnits } from "../../config/price-units.ts";
import { priceAt } from "../../config/price.ts";
import { formatUsd } from "../../core/money.ts";
import { upcoming } from "../../config/price-dates.ts";
import { namesUnit, tierLimits, unitPrice } from "../../config/unit-prices.ts";
import type { MarginPpm } from "./decimal.ts";
import { pricesText } from "./price-text.ts";
import { PriceRefusal, type PriceSource, type RefusalStatus, type SourceEntry } from "./source.ts";
import { providerOf } from "./vendor-names.ts";
import { type Quote, readQuote } from "./quote.ts";
import { pricesWithMargin } from "./customer-prices.ts";

/** Input of a comparison. */
export interface CompareOptions {
  /** At least one; if several have a model, they must agree, and the first one's price is taken. */
  readonly sources: readonly PriceSource[];
  /** The only vendor whose routes are compared. Default: all. */
  readonly vendor?: string | undefined;
  /** Prices are computed with it. Default: prices stay as they are. */
  readonly marginPpm?: MarginPpm | undefined;
  /** Whether prices of 0 are imported. */
  readonly allowsFree: boolean;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** Result of one comparison: what to write, or why nothing is written. */
export type Comparison = Imported | Refused;

/** Prices that can be written. */
export interface Imported {
  readonly status: "new" | "changed" | "unchanged";
  /** The configured prices in force now and later; undefined if there are none. */
  readonly current: readonly DatedPrice[] | undefined;
  readonly imported: readonly DatedPrice[];
}

/** Prices that are not imported. */
export interface Refused {
  readonly status: RefusalStatus;
  readonly current: readonly DatedPrice[] | undefined;
  readonly imported?: undefined;
  readonly reason: string;
  readonly remedy: string;
}

/** The comparison of a route's cost. */
export interface RouteComparison {
  readonly route: RouteConfig;
  readonly cost: Comparison;
  /** The entries of the price lists that were found. */
  readonly found: readonly FoundEntry[];
}

/** A model in a price list. */
export interface FoundEntry {
  readonly source: PriceSource;
  readonly entry: SourceEntry;
  /** Assumption by which the price was found. Absent if there is none. */
  readonly assumption?: string;
  /** Absent if its price was refused. */
  readonly quote?: Quote;
}

/** The comparison of a model. */
export interface ModelComparison {
  readonly model: ModelConfig;
  readonly routes: readonly RouteComparison[];
  /** Absent without a margin. */
  readonly price?: PriceComparison;
}

/** The comparison of a model's price. */
export type PriceComparison = Comparison & {
  /** The routes whose cost is the configured one, as no imported one can be used. */
  readonly asConfigured: readonly RouteConfig[];
};

/**
 * Compares every model that has a route to compare. Routes to `demo` vendors cost nothing and are
 * left out.
 */
export function compareModels(config: Config, options: CompareOptions): readonly ModelComparison[] {
  return [...config.models.values()].flatMap((model) => {
    const routes = model.routes
      .flatMap((route) => {
        const vendor = config.vendors.get(route.vendor);
        return vendor === undefined || vendor.kind === "demo" ? [] : [{ route, vendor }];
      })
      .map((each) => ({ ...each, isCompared: isChosen(each.route, options) }));
    const compared = routes
      .filter(({ isCompared }) => isCompared)
      .map(({ route, vendor }) => compareRoute(model, { route, vendor, options }));
    if (compared.length === 0) return [];
    if (options.marginPpm === undefined) return [{ model, routes: compared }];
    const costs = routes.map(({ route }) => costOf(route, { compared, nowMs: options.nowMs }));
    const asConfigured = costs.filter(({ isImported }) => !isImported).map(({ route }) => route);
    const price = { ...comparePrice(model, { costs, options }), asConfigured };
    return [{ model, routes: compared, price }];
  });
}

function isChosen(route: RouteConfig, { vendor }: CompareOptions): boolean {
  return vendor === undefined || route.vendor === vendor;
}

interface RouteContext {
  readonly route: RouteConfig;
  readonly vendor: VendorConfig;
  readonly options: CompareOptions;
}

function compareRoute(model: ModelConfig, context: RouteContext): RouteComparison {
  const { route, options } = context;
  const current = route.costs && upcoming(route.costs, options.nowMs);
  const found: FoundEntry[] = [];
  try {
    const imported = importCost(model, context, found);
    return { route, found, cost: { status: change(current, imported), current, imported } };
  } catch (error) {
    return { route, found, cost: refused(error, current) };
  }
}

/** @param found gets the entries that are found, also if one of them is refused */
function importCost(
  model: ModelConfig,
  { route, vendor, options }: RouteContext,
  found: FoundEntry[],
): readonly DatedPrice[] {
  const missing: PriceRefusal[] = [];
  const quotes: Quote[] = [];
  for (const source of options.sources) {
    const match = findEntry(source, { route, vendor, missing });
    if (match === undefined) continue;
    const place = found.push(match) - 1;
    const { nowMs } = options;
    const quote = readQuote(match.entry, { format: source.format, type: model.type, nowMs });
    found[place] = { ...match, quote };
    quotes.push(quote);
  }
  const [first] = quotes;
  if (first === undefined) throw missing[0] ?? new Error("no price list was compared");
  checkAgreement(found, options.nowMs);
  const free = quotes.flatMap((quote) => quote.free);
  if (free.length > 0 && !options.allowsFree) {
    const units = [...new Set(free)].join(", ");
    throw new PriceRefusal("free", `free of charge: ${units}`, "add --allow-free to import it");
  }
  return first.prices;
}

/** @param missing gets the reason where the list does not have the model */
function findEntry(
  source: PriceSource,
  { route, vendor, missing }: Omit<RouteContext, "options"> & { readonly missing: PriceRefusal[] },
): FoundEntry | undefined {
  try {
    const { id, ...assumed } = providerOf(vendor, source.format);
    const entry = source.find(id, route.model);
    if (entry !== undefined) return { source, entry, ...assumed };
    const reason = `${source.format} has no ${route.model} of ${id}`;
    const remedy = "write the cost by hand, or read a newer list with --from FILE";
    missing.push(new PriceRefusal("missing", reason, remedy));
  } catch (error) {
    if (!(error instanceof PriceRefusal) || error.status !== "missing") throw error;
    missing.push(error);
  }
  return undefined;
}

/** @throws PriceRefusal if a list names another price than the first for a unit that both name */
function checkAgreement([first, ...others]: readonly FoundEntry[], nowMs: number): void {
  if (first?.quote === undefined) return;
  const price = priceAt(first.quote.prices, nowMs);
  for (const { source, quote } of others) {
    const problem = quote && difference(price, priceAt(quote.prices, nowMs));
    if (problem === undefined) continue;
    const reason = `${first.source.title} and ${source.title} disagree on ${problem}`;
    const remedy = "check the vendor's price page, and name one list with --from";
    throw new PriceRefusal("conflicting", reason, remedy);
  }
}

function difference(one: PriceConfig, other: PriceConfig): string | undefined {
  for (const above of tierLimits([one, other])) {
    for (const unit of priceUnits) {
      if (!namesUnit(one, unit.key) || !namesUnit(other, unit.key)) continue;
      const a = unitPrice(one, unit, above);
      const b = unitPrice(other, unit, above);
      if (a === b) continue;
      const where = above === 0 ? unit.name : `${unit.name} above ${above} tokens`;
      return `${where}: ${formatUsd(a ?? 0n)} and ${formatUsd(b ?? 0n)}`;
    }
  }
  return undefined;
}

/** The cost of a route: the imported one, else the configured one. */
interface KnownCost {
  readonly route: RouteConfig;
  readonly isImported: boolean;
  readonly prices: readonly DatedPrice[] | undefined;
}

function costOf(
  route: RouteConfig,
  known: { readonly compared: readonly RouteComparison[]; readonly nowMs: number },
): KnownCost {
  const imported = known.compared.find((each) => each.route === route)?.cost.imported;
  const configured = route.costs && upcoming(route.costs, known.nowMs);
  return { route, isImported: imported !== undefined, prices: imported ?? configured };
}

function comparePrice(
  model: ModelConfig,
  { costs, options }: { readonly costs: readonly KnownCost[]; readonly options: CompareOptions },
): Comparison {
  const current = model.prices.length === 0 ? undefined : upcoming(model.prices, options.nowMs);
  try {
    const known = costs.map(({ route, prices }) => prices ?? unknownCost(route));
    const imported = pricesWithMargin(known, options.marginPpm ?? 0n);
    return { status: change(current, imported), current, imported };
  } catch (error) {
    return refused(error, current);
  }
}

function unknownCost({ vendor, model }: RouteConfig): never {
  throw new PriceRefusal(
    "refused",
    `the cost of ${vendor} ${model} is not known`,
    "write the cost of that route by hand, then import again",
  );
}

function change(
  current: readonly DatedPrice[] | undefined,
  imported: readonly DatedPrice[],
): Imported["status"] {
  if (current === undefined) return "new";
  return pricesText(current) === pricesText(imported) ? "unchanged" : "changed";
}

function refused(error: unknown, current: readonly DatedPrice[] | undefined): Refused {
  if (!(error instanceof PriceRefusal)) throw error;
  const { status, message: reason, remedy } = error;
  return { status, current, reason, remedy };
}
