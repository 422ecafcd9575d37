/** The YAML. */
import type { DatedPrice } from "../../config/config.ts";
import type { Comparison, ModelComparison, RouteComparison } from "./compare.ts";
import { priceMembers } from "./price-text.ts";
import { Document, type Node, YAMLMap, YAMLSeq, isMap, isScalar, isSeq, visit } from "yaml";
import { type ImportResult, marginText } from "./report.ts";

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
    " Copy cost into the routes and price into the models of uas.yaml, then run: uas check",
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
export function pricesNode(document: Document, prices: readonly DatedPrice[]): Node {
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
