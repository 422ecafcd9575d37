/**
 * Reports an import: the differences for people and as JSON, and the YAML to copy into `uas.yaml`.
 */
import type { DatedPrice } from "../../config/config.ts";
import { formatDecimal } from "../../core/money.ts";
import { cell } from "../output.ts";
import type {
  Comparison,
  FoundEntry,
  ModelComparison,
  PriceComparison,
  RouteComparison,
} from "./compare.ts";
import type { MarginPpm } from "./decimal.ts";
import { type PriceMembers, priceMembers, pricesText } from "./price-text.ts";
import type { PriceSource } from "./source.ts";

/** The compared prices and their source. */
export interface ImportResult {
  readonly sources: readonly PriceSource[];
  readonly marginPpm?: MarginPpm | undefined;
  readonly models: readonly ModelComparison[];
}

/** Every comparison of an import. */
function comparisons({ models }: ImportResult): readonly Comparison[] {
  return models.flatMap(({ routes, price }) => [
    ...routes.map(({ cost }) => cost),
    ...(price === undefined ? [] : [price]),
  ]);
}

/** Whether everything could be imported. */
export function isComplete(result: ImportResult): boolean {
  return comparisons(result).every(({ imported }) => imported !== undefined);
}

/** A margin such as `20%`. */
export function marginText(marginPpm: MarginPpm): string {
  return `${formatDecimal(marginPpm, 4)}%`;
}

/** The differences: a paragraph for each cost and price, then how many there are of each status. */
export function differenceText(result: ImportResult): string {
  const paragraphs = result.models.flatMap(({ model, routes, price }) => [
    ...routes.map((route) => routeText(model.key, route)),
    ...(price === undefined ? [] : [priceText(model.key, price)]),
  ]);
  return [...paragraphs, summary(comparisons(result))].join("\n");
}

function priceText(key: string, price: PriceComparison): string {
  const notes = price.imported === undefined ? [] : price.asConfigured;
  return paragraph(
    `${key}: price`,
    price,
    notes.map(({ vendor, model }) => `from the configured cost of ${vendor} ${model}`),
  );
}

function routeText(key: string, { route, cost, found }: RouteComparison): string {
  const head = `${key}: cost of ${route.vendor} ${route.model}`;
  return paragraph(head, cost, found.flatMap(foundLines));
}

function foundLines({ source, entry, assumption, quote }: FoundEntry): readonly string[] {
  const { notImported = [], roundedUp = [] } = quote ?? {};
  return [
    `found: ${entry.name} (${entry.match}) in ${source.title}`,
    ...(assumption === undefined ? [] : [`assumed: ${assumption}`]),
    ...(notImported.length > 0 ? [`not imported: ${notImported.join(", ")}`] : []),
    ...(roundedUp.length > 0 ? [`rounded up: ${roundedUp.join(", ")}`] : []),
  ];
}

/** The longest status. */
const statusWidth = "conflicting".length;

function paragraph(head: string, comparison: Comparison, notes: readonly string[]): string {
  const lines = [...changeLines(comparison), ...notes].map((line) => `  ${cell(line)}`);
  return [`${comparison.status.padEnd(statusWidth)}  ${cell(head)}`, ...lines].join("\n");
}

function changeLines(comparison: Comparison): readonly string[] {
  const { status, current, imported } = comparison;
  const before = current === undefined ? [] : [`- ${pricesText(current)}`];
  if (imported === undefined) return [`${comparison.reason}: ${comparison.remedy}`];
  if (status === "unchanged") return [`= ${pricesText(imported)}`];
  return [...before, `+ ${pricesText(imported)}`];
}

function summary(all: readonly Comparison[]): string {
  const counts = Map.groupBy(all, ({ status }) => status);
  return [...counts].map(([status, { length }]) => `${length} ${status}`).join(", ");
}

/** The JSON document of an import. */
export function importJson(result: ImportResult, yaml: string) {
  const { sources, marginPpm, models } = result;
  return {
    sources: sources.map(({ format, title }) => ({ format, title })),
    margin: marginPpm === undefined ? null : marginText(marginPpm),
    models: models.map(({ model, routes, price }) => ({
      modelKey: model.key,
      routes: routes.map(routeJson),
      price: price === undefined ? null : comparisonJson(price),
    })),
    yaml,
  };
}

function routeJson({ route, cost, found }: RouteComparison) {
  return {
    vendor: route.vendor,
    model: route.model,
    ...comparisonJson(cost),
    found: found.map(({ source, entry, assumption, quote }) => ({
      source: source.title,
      entry: entry.name,
      match: entry.match,
      assumption: assumption ?? null,
      notImported: quote?.notImported ?? [],
      roundedUp: quote?.roundedUp ?? [],
    })),
  };
}

function comparisonJson(comparison: Comparison) {
  const { status, current, imported } = comparison;
  const refusal =
    comparison.imported === undefined
      ? { reason: comparison.reason, remedy: comparison.remedy }
      : { reason: null, remedy: null };
  return { status, current: listJson(current), imported: listJson(imported), ...refusal };
}

function listJson(prices: readonly DatedPrice[] | undefined): readonly PriceMembers[] | null {
  return prices === undefined ? null : priceMembers(prices);
}
