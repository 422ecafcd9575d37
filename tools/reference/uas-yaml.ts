/** The reference of `uas.yaml`, from its schema. */
import { demoYaml } from "../../src/config/demo-config.ts";
import {
  configJsonSchema,
  type JsonSchema,
  linkedJsonSchema,
} from "../../src/config/json-schema.ts";
import { kindAddresses, modelTypeWord } from "../../src/config/kinds.ts";
import { defaultAddress } from "../../src/config/presets.ts";
import { servedKinds } from "../../src/provider/index.ts";
import { code, table } from "./table.ts";

/** The JSON Schema as a file. */
export function configSchemaFile(): string {
  return JSON.stringify(configJsonSchema(servedKinds), null, 2);
}

/** The page of all keys, in the order of the code. */
export function configKeysPage(): string {
  const sections = membersOf(linkedJsonSchema(servedKinds)).map(([name, member]) =>
    section(name, member),
  );
  return `# Keys of uas.yaml

Here you find every key of the configuration file, with its values and its default. [uas-yaml.md](../uas-yaml.md) shows a
file with explanations. The file is YAML and strictly checked: an unknown key is an error. Editors check it with
[uas-schema.json](uas-schema.json). Generated from \`src/config/\`.

${sections.join("\n\n")}

${kindsSection()}

## The built-in demo

This file is equal to the demo that runs without a file. Its one vendor generates replies inside the gateway; \`demo-chat\`
writes at a human pace, \`demo/instant\` at once.

\`\`\`yaml
${demoYaml}\`\`\``;
}

function kindsSection(): string {
  const rows = [...servedKinds].map(([kind, served]) => [
    code(kind),
    served.dialects.map(code).join(", ") || "none",
    served.modelTypes.map((type) => code(modelTypeWord(type))).join(", "),
    served.needsApiKey ? "required" : "optional",
    relink(kindAddresses[kind] ?? ""),
    defaultAddress(kind) === "" ? "" : code(defaultAddress(kind)),
  ]);
  const keys = table(
    ["kind", "dialects, preferred first", "models", "credential", "address", "default of base_url"],
    rows,
  );
  return `## Kinds of vendor\n\n${keys}`;
}

function section(name: string, schema: JsonSchema): string {
  const about = relink(schema.description ?? "");
  const rows = rowsOf(schema);
  if (rows.length === 0) return `## ${name}\n\n${about}`;
  const keys = table(["key", "values", "meaning"], rows.map(cells));
  const prices = pricesOf(schema);
  return `## ${name}\n\n${about}\n\n${keys}${prices}`;
}

/** Prices have the same keys in models, routes and tiers: they are listed once. */
function pricesOf(schema: JsonSchema): string {
  const price = itemOf(schema).properties?.["price"];
  if (typeof price !== "object") return "";
  const rows = rowsOf(price).filter(([path]) => !/^tiers\[\]\.(?!above)/.test(path));
  const keys = table(["key", "values", "meaning"], rows.map(cells));
  return `\n\n### price\n\nThe keys of \`price\`, of \`cost\` of a route, and of each tier in \`tiers\` of a model or route:\n\n${keys}`;
}

/** A key with its path from the section, as `credentials[].weight`. */
type Row = readonly [path: string, schema: JsonSchema, isRequired: boolean];

function rowsOf(schema: JsonSchema, path = ""): Row[] {
  const item = itemOf(schema);
  return membersOf(item).flatMap(([name, member]): Row[] => {
    const own = path === "" ? name : `${path}.${name}`;
    const isRequired = item.required?.includes(name) === true;
    const row: Row = [own, member, isRequired];
    const isPrice = path.split(".").length <= 1 && /^(price|cost|tiers)$/.test(name);
    if (isPrice && !path.startsWith("price") && item.properties?.["above"] === undefined) {
      const isTiersOfPrice = name === "tiers" && item.properties?.["input"] !== undefined;
      if (!isTiersOfPrice) return [row];
    }
    const inner = typeof member.items === "object" ? `${own}[]` : own;
    return [row, ...rowsOf(member, inner)];
  });
}

function membersOf(schema: JsonSchema): [string, JsonSchema][] {
  return Object.entries(schema.properties ?? {}) as [string, JsonSchema][];
}

/** An item of a list or of a map with free keys. For one value or a list: an item of the list. */
function itemOf(schema: JsonSchema): JsonSchema {
  const { items, additionalProperties, then } = schema;
  if (typeof then === "object") return itemOf(then);
  if (typeof items === "object" && !Array.isArray(items)) return itemOf(items);
  return typeof additionalProperties === "object" ? additionalProperties : schema;
}

function cells([path, schema, isRequired]: Row): string[] {
  const value = schema.default;
  const facts = [
    relink(schema.description ?? ""),
    ...(isRequired ? ["Required."] : []),
    ...(value === undefined
      ? []
      : [`Default: ${code(JSON.stringify(value).replaceAll('"', ""))}.`]),
  ];
  return [code(path), values(schema), facts.join(" ")];
}

function values(schema: JsonSchema): string {
  const { enum: words, items, title, minimum, maximum, type } = schema;
  if (typeof schema.then === "object") {
    return [values(schema.else as JsonSchema), values(schema.then)].join(" or ");
  }
  if (words !== undefined)
    return words
      .filter((word) => word !== null)
      .map((word) => code(String(word)))
      .join(", ");
  if (typeof items === "object") return `list: ${values(items as JsonSchema)}`;
  if (schema.const !== undefined) return code(String(schema.const));
  if (title === "whole number" && Number(maximum) < 2 ** 31 - 1) return `${minimum} to ${maximum}`;
  return title ?? ([type].flat().includes("object") ? "map" : "");
}

function relink(text: string): string {
  return text
    .replaceAll(/\]\((?!reference\/)([\w-]+\.md)/g, "](../$1")
    .replaceAll("](reference/", "](");
}
