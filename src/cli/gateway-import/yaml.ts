/** Writes an import as `uas.yaml`, with the report as comments at its end. */
import { Document, isMap, isSeq, type Node, visit, YAMLMap } from "yaml";
import { modelTypeWord } from "../../config/kinds.ts";
import { pricesNode } from "../price-import/report-yaml.ts";
import type { ImportedModel, ImportPlan, ImportedRoute } from "./plan.ts";
import type { ImportedCredential, ImportedVendor } from "./vendors.ts";

/**
 * The configuration.
 *
 * @param head one line about the source and the prices
 */
export function planYaml(plan: ImportPlan, head: string): string {
  const document = new Document({ version: 1 });
  document.commentBefore = ` ${comment(head)}`;
  document.set("vendors", vendorsNode(document, plan));
  if (plan.priceLists.size > 0) document.set("price_lists", listsNode(document, plan));
  const priced = plan.models.filter(({ prices }) => prices !== undefined);
  document.set("models", modelsNode(document, priced));
  const text = document.toString({ lineWidth: 0 });
  return [text.trimEnd(), ...unpricedLines(plan), "", ...commentLines(reportLines(plan)), ""].join(
    "\n",
  );
}

/** The report: variables to set, then what is not imported. */
export function reportLines({ variables, notes }: ImportPlan): readonly string[] {
  const set = [...variables].map(([name, place]) => `${name}: ${place}`);
  const other = notes.map(({ place, text }) => `${place}: ${text}`);
  return [
    ...(set.length > 0
      ? ["Set these variables (credentials are not copied):", ...indent(set)]
      : []),
    ...(other.length > 0 ? ["Not imported, or not exactly:", ...indent(other)] : []),
  ].map(comment);
}

function indent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}

function commentLines(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `# ${line}`);
}

/** Text in one line: a line break would end the comment. */
function comment(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\uFEFF]+/gu, " ");
}

function vendorsNode(document: Document, { vendors }: ImportPlan): YAMLMap {
  const map = new YAMLMap();
  for (const vendor of vendors) map.set(vendor.name, inLine(document.createNode(members(vendor))));
  return map;
}

function members({ upstream, credentials }: ImportedVendor) {
  const [first, ...others] = credentials;
  const isOne = first !== undefined && others.length === 0;
  const { preset, kind, baseUrl } = upstream;
  return {
    ...(preset === undefined ? { kind } : { preset }),
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    ...(isOne && limitsOf(first) === undefined && { api_key: `\${env:${first.variable}}` }),
    ...(first !== undefined &&
      (!isOne || limitsOf(first) !== undefined) && {
        credentials: credentials.map((each) => credentialMembers(each, isOne)),
      }),
  };
}

function credentialMembers(credential: ImportedCredential, isOne: boolean) {
  const { variable, weight, priority } = credential;
  const limits = limitsOf(credential);
  return {
    api_key: `\${env:${variable}}`,
    ...(!isOne && { weight, ...(priority > 0 && { priority }) }),
    ...(limits && { limits }),
  };
}

function limitsOf({ rpm, tpm }: ImportedCredential) {
  if (rpm === undefined && tpm === undefined) return undefined;
  return { ...(rpm !== undefined && { rpm }), ...(tpm !== undefined && { tpm }) };
}

function listsNode(document: Document, { priceLists }: ImportPlan): YAMLMap {
  const map = new YAMLMap();
  for (const [name, markup] of priceLists) map.set(name, inLine(document.createNode({ markup })));
  return map;
}

function modelsNode(document: Document, models: readonly ImportedModel[]): YAMLMap {
  const map = new YAMLMap();
  for (const model of models) map.set(model.key, modelNode(document, model));
  return map;
}

function modelNode(document: Document, model: ImportedModel): YAMLMap {
  const { type, maxOutputTokens, fallbacks, prices, routes } = model;
  const node = document.createNode({
    type: modelTypeWord(type),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
  }) as YAMLMap;
  const isOne = routes.length === 1;
  const nodes = routes.map((route) => routeNode(document, route, isOne));
  node.set(document.createNode("routes"), document.createNode(nodes));
  if (fallbacks.length > 0) node.set("fallback_models", inLine(document.createNode(fallbacks)));
  if (prices !== undefined) node.set("price", inLine(pricesNode(document, prices)));
  return node;
}

function routeNode(document: Document, route: ImportedRoute, isOne: boolean): Node {
  const { vendor, model, weight, priority, cost } = route;
  const node = document.createNode({
    vendor,
    model,
    ...(!isOne && { weight, ...(priority > 0 && { priority }) }),
  }) as YAMLMap;
  if (cost !== undefined) node.set("cost", pricesNode(document, cost));
  return inLine(node);
}

/** Models without a price as comments that only lack it. */
function unpricedLines({ models }: ImportPlan): readonly string[] {
  const unpriced = models.filter(({ prices }) => prices === undefined);
  if (unpriced.length === 0) return [];
  const document = new Document();
  document.contents = modelsNode(document, unpriced);
  const text = document.toString({ lineWidth: 0 }).trimEnd();
  const lines = text.split("\n").map((line) => comment(line));
  return [
    "",
    "  # Add a price to each, and remove the first # of its lines.",
    ...lines.map((line) => `  #${line}`),
  ];
}

function inLine(node: Node): Node {
  visit(node, {
    Collection: (_key, each) => {
      if (isMap(each) || isSeq(each)) each.flow = true;
    },
  });
  return node;
}
