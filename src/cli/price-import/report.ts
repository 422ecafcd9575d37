/** Reports an import: the differences for people and as JSON, and the YAML to copy into `uas.yaml`. */
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
import { Document, type Node, YAMLMap, YAMLSeq, isMap, isScalar, isSeq, visit } from "yaml";

/** What was compared, and with what. */
interface ImportResult {
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

// The YAML.

/**
 * The new and changed costs and prices under their models and routes.
 *
 * @param nowMs milliseconds since 1970, for the date in the first comment
 */
export function importYaml(result: ImportResult, nowMs: number): string {
  const document = new Document({});
  const models = new YAMLMap();
  for (const model of result.models) {
    const node = modelNode(document, model);
    if (node !== undefined) models.set(document.createNode(model.model.key), node);
  }
  document.contents = document.createNode({ models: null }) as typeof document.contents;
  document.set("models", models);
  document.commentBefore = headComment(result, nowMs);
  return document.toString({ lineWidth: 0 });
}

function headComment({ sources, marginPpm }: ImportResult, nowMs: number): string {
  const day = new Date(nowMs).toISOString().slice(0, 10);
  const margin =
    marginPpm === undefined
      ? "no margin: prices stay as they are"
      : `margin ${marginText(marginPpm)} of the cost, rounded up`;
  return [
    ` Prices imported on ${day} from ${sources.map(({ title }) => title).join(" and ")}; ${margin}.`,
    " Copy cost into the routes and price into the models of uas.yaml, then run: npx uas check",
  ].join("\n");
}

function modelNode(document: Document, { routes, price }: ModelComparison): YAMLMap | undefined {
  const node = new YAMLMap();
  const written = routes.filter(({ cost }) => isWritten(cost));
  if (written.length > 0) {
    const list = new YAMLSeq();
    for (const route of written) list.add(routeNode(document, route));
    node.set(document.createNode("routes"), list);
  }
  if (price !== undefined && isWritten(price)) {
    node.set(document.createNode("price"), pricesNode(document, price.imported));
  }
  return node.items.length > 0 ? node : undefined;
}

function isWritten(
  comparison: Comparison,
): comparison is Comparison & { readonly imported: readonly DatedPrice[] } {
  return comparison.status === "new" || comparison.status === "changed";
}

function routeNode(document: Document, { route, cost, found }: RouteComparison): YAMLMap {
  const node = new YAMLMap();
  node.set(document.createNode("vendor"), document.createNode(route.vendor));
  node.set(document.createNode("model"), document.createNode(route.model));
  const key = document.createNode("cost");
  key.commentBefore = found
    .map(({ entry, source }) => ` ${entry.name} (${entry.match}) in ${source.title}`)
    .join("\n");
  if (cost.imported !== undefined) node.set(key, pricesNode(document, cost.imported));
  return node;
}

/** One price as a map, several as a list of them; each in one line, amounts in quotes. */
function pricesNode(document: Document, prices: readonly DatedPrice[]): Node {
  const members = priceMembers(prices);
  const [first] = members;
  const node = document.createNode(members.length === 1 ? first : members) as Node;
  for (const map of isSeq(node) ? node.items : [node]) if (isMap(map)) map.flow = true;
  visit(node, {
    Pair(_, { key, value }) {
      const isAmount = isScalar(value) && typeof value.value === "string";
      if (isAmount && !(isScalar(key) && key.value === "from")) value.type = "QUOTE_DOUBLE";
    },
  });
  return node;
}
