/** New models as YAML: one line for each. */
import { Document, isMap, isSeq, type Node, visit, YAMLMap } from "yaml";
import { modelTypeWord } from "../../config/kinds.ts";
import type { NewModel, NewModels } from "./new-models.ts";
import { marginText } from "./report.ts";
import { pricesNode } from "./report-yaml.ts";

/**
 * A file with the models of a vendor.
 *
 * @param nowMs milliseconds since 1970, for the date in the first comment
 */
export function newModelsYaml(found: NewModels, nowMs: number): string {
  const document = new Document({});
  document.contents = document.createNode({ models: null }) as typeof document.contents;
  document.set("models", modelsNode(document, found));
  document.commentBefore = headComment(found, nowMs);
  return document.toString({ lineWidth: 0 });
}

/** The models as the value of `models:`. */
export function modelsNode(document: Document, { vendor, models }: NewModels): YAMLMap {
  const map = new YAMLMap();
  for (const model of models) {
    map.set(document.createNode(model.name), modelNode(document, vendor, model));
  }
  return map;
}

function headComment(
  { vendor, source, marginPpm, models, leftOut, isOfVendor }: NewModels,
  nowMs: number,
): string {
  const day = new Date(nowMs).toISOString().slice(0, 10);
  const isGuessed = source.format === "genai-prices" && models.length > 0;
  return [
    ` Models of ${vendor}, written on ${day} from ${source.title}; margin ${marginText(marginPpm)} of the cost.`,
    ...(isOfVendor
      ? []
      : [" The names are those of the price list: uas check --probe finds unknown ones."]),
    ...(isGuessed
      ? [
          " The list has no output limits: max_output_tokens is low. Raise it, and add reasoning: true.",
        ]
      : []),
    ...(leftOut.length > 0 ? [` Left out: ${leftOut.map(({ name }) => name).join(", ")}`] : []),
  ].join("\n");
}

function modelNode(document: Document, vendor: string, model: NewModel): Node {
  const { name, type, maxOutputTokens, maxContext, isReasoning } = model;
  const route = document.createNode({
    vendor,
    model: name,
    ...(maxContext !== undefined && { max_context: maxContext }),
  }) as YAMLMap;
  route.set("cost", pricesNode(document, model.costs));
  const node = document.createNode({
    type: modelTypeWord(type),
    ...(isReasoning && { reasoning: true }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
  }) as YAMLMap;
  node.set("routes", document.createNode([route]));
  node.set("price", pricesNode(document, model.prices));
  visit(node, {
    Collection: (_key, each) => {
      if (isMap(each) || isSeq(each)) each.flow = true;
    },
  });
  return node;
}
