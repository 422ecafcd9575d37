/** The reference of task parameters. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { servedKinds, vendorKinds } from "../../src/provider/index.ts";
import { code, table } from "./table.ts";

const types = [
  { type: ModelType.IMAGE, word: "IMAGE", member: "imageParams", price: '{ image: "0" }' },
  { type: ModelType.VIDEO, word: "VIDEO", member: "videoParams", price: '{ request: "0" }' },
  { type: ModelType.AUDIO, word: "AUDIO", member: "audioParams", price: '{ request: "0" }' },
];

/** The parameters of images, videos and audio, as the schemas of the kinds of vendor have them. */
export function taskParametersPage(): string {
  const sections = types.map(({ type, word, member, price }) => {
    const kinds = [...servedKinds].filter(([, { modelTypes }]) => modelTypes.includes(type));
    const schemas = kinds.flatMap(([kind]) => {
      const schema = schemaOf(kind, `{ type: ${word}, price: ${price}, `);
      return schema === undefined ? [] : [{ kind, schema }];
    });
    const names = [...new Set(schemas.flatMap(({ schema }) => Object.keys(membersOf(schema))))];
    const rows = names.map((name) => [
      code(name),
      meaningOf(
        name,
        schemas.map(({ schema }) => schema),
      ),
      ...schemas.map(({ schema }) => valuesOf(name, schema)),
    ]);
    const head = ["parameter", "meaning", ...schemas.map(({ kind }) => code(kind))];
    return `## ${code(member)}\n\nFor models of type ${code(word)}.\n\n${table(head, rows)}`;
  });
  return `# Parameters of tasks

Here you find the parameters that a [task](../tasks.md) of each kind of vendor accepts, with their values. A model's own
schema, \`GET /api/ai/models/{modelKey}/schema\`, decides: it can differ with the name and the price of the model.
[task-parameters.md](../task-parameters.md) explains costs, images and \`extra\`. Generated from \`src/provider/\`.

${sections.join("\n\n")}`;
}

/** The schema of a model of one vendor of a kind. Undefined if the kind runs no such tasks. */
function schemaOf(kind: string, model: string): JsonObject | undefined {
  const address =
    kind === "demo" ? "" : ', base_url: https://vendor.example, api_key: "${env:KEY}"';
  const text = [
    "version: 1",
    `vendors: { vendor: { kind: ${kind}${address} } }`,
    `models: { model: ${model}routes: [{ vendor: vendor, model: model }] } }`,
  ].join("\n");
  const config = readConfig(text);
  const [vendor, made] = [config.vendors.get("vendor"), config.models.get("model")];
  const [route] = made?.routes ?? [];
  if (vendor === undefined || made === undefined || route === undefined) return undefined;
  return vendorKinds[kind]?.create(vendor).tasks?.paramsSchema?.(made, route);
}

function readConfig(text: string): Config {
  const cwd = mkdtempSync(join(tmpdir(), "uas-reference-"));
  try {
    writeFileSync(join(cwd, "uas.yaml"), text);
    return loadConfig({ env: { KEY: "key" }, cwd, kinds: servedKinds });
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

type Members = Readonly<Record<string, JsonObject>>;

function membersOf(schema: JsonObject): Members {
  return (schema["properties"] ?? {}) as Members;
}

/** The first description of a parameter. */
function meaningOf(name: string, schemas: readonly JsonObject[]): string {
  const [text] = schemas.flatMap((schema) => membersOf(schema)[name]?.["description"] ?? []);
  return typeof text === "string" ? text.replace(/[;,].*/, "") : "";
}

/** The values of a parameter in one cell. Empty if the vendor does not have it. */
function valuesOf(name: string, schema: JsonObject): string {
  const value = membersOf(schema)[name];
  if (value === undefined) return "";
  const needed = schema["required"];
  const isRequired = Array.isArray(needed) && needed.includes(name);
  const fallback = value["default"];
  return [
    rangeOf(value),
    ...(fallback === undefined ? [] : [`default ${code(textOf(fallback))}`]),
    ...(isRequired ? ["required"] : []),
  ].join(", ");
}

function rangeOf(value: JsonObject): string {
  const { enum: words, minimum, maximum, maxLength, maxItems, format, pattern, properties } = value;
  if (Array.isArray(words)) return words.map((word) => code(textOf(word))).join(", ");
  if (minimum !== undefined) return `${textOf(minimum)} to ${textOf(maximum)}`;
  if (maxItems !== undefined) return `up to ${textOf(maxItems)}: ${rangeOf(itemsOf(value))}`;
  if (format === "uri") return pattern === undefined ? "https or `data:`" : "`data:`";
  if (maxLength !== undefined) return `up to ${textOf(maxLength)} characters`;
  if (properties !== undefined) return Object.keys(membersOf(value)).map(code).join(", ");
  return "yes";
}

function itemsOf(value: JsonObject): JsonObject {
  return value["items"] as JsonObject;
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
