/** Reads the configuration file: strict, with all problems reported at once. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Parsed } from "./address.ts";
import type { Config, VendorConfig } from "./config.ts";
import { alertsSchema, checkAlerts } from "./alerts.ts";
import { corsSchema } from "./cors.ts";
import { type CommandResults, hasCommands, runCommands } from "./commands.ts";
import { ConfigDocument, pathText } from "./document.ts";
import { type IncludedFile, mergeIncluded, readIncluded } from "./include.ts";
import type { ServedKinds } from "./kinds.ts";
import { checkFallbackModels, modelsSchema, servedModels } from "./models.ts";
import { ConfigError } from "./problems.ts";
import { checkPriceLists, priceListsSchema } from "./price-lists.ts";
import { readProblem, type ReferenceSource } from "./references.ts";
import { retentionSchema } from "./retention.ts";
import { limitDefaultsSchema } from "./routing.ts";
import { scalar } from "./scalars.ts";
import { absent, list, readDocument, section } from "./schema.ts";
import { consoleSchema, smsSchema } from "./sign-in.ts";
import { smtpSchema } from "./smtp.ts";
import { storageSchema } from "./storage.ts";
import { checkPrefixes, servedVendors, type VendorEntry, vendorsSchema } from "./vendors.ts";
import { webhooksSchema } from "./webhooks.ts";
import { demoSource, demoYaml } from "./demo-config.ts";

/** A document that is not read from a file. */
export interface StoredDocument {
  /** Its name in messages. */
  readonly source: string;
  readonly content: string;
  /** The number of its revision. Default: it has none. */
  readonly revision?: string | undefined;
  /** Whether it is stored in the database, or is to be. Default false. */
  readonly isStored?: boolean | undefined;
}

/** The sources of {@link loadConfig}. */
export interface LoadOptions {
  /**
   * The file, absolute or relative to `cwd`. Default: `UAS_CONFIG`, else `uas.yaml` in `cwd`, else
   * the built-in demo.
   */
  readonly path?: string | undefined;
  /** A document to read instead of a file. */
  readonly document?: StoredDocument | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /**
   * The secrets that the database stores, by name. Default: not known yet, before it is open; then
   * references to them have a placeholder.
   */
  readonly secrets?: ReadonlyMap<string, string> | undefined;
  /** The output of its commands. Default: not known; then references have a placeholder. */
  readonly commands?: CommandResults | undefined;
  /** The kinds that this version serves. Other kinds that the file may name become warnings. */
  readonly kinds: ServedKinds;
  /**
   * How to treat `${env:…}` or `${file:…}` that cannot be resolved. Default `refuse`. `placeholder`
   * is for commands that call no vendor: they also work in a shell that lacks the vendors' secrets.
   */
  readonly unresolved?: "refuse" | "placeholder" | undefined;
  /** False: models may lack a price, as `uas price import` finds it. Default true. */
  readonly needsPrices?: boolean | undefined;
}

/** The largest configuration file. */
const fileBytesMax = 4 * 1024 * 1024;

/** The value of references that cannot be resolved: a host name that no DNS resolver finds. */
const placeholder = "unresolved.invalid";

/**
 * Reads and checks the configuration.
 *
 * @throws ConfigError with all problems, as `file:line:col path: message`
 */
export function loadConfig(options: LoadOptions): Config {
  const { source, content, main, included, folder } = readSource(options);
  const references: ReferenceSource = {
    env: options.env,
    folder,
    secrets: options.secrets,
    commands: options.commands,
    isStored: options.document?.isStored,
    placeholder: options.unresolved === "placeholder" ? placeholder : undefined,
  };
  const document = readDocuments(source, main, included);
  const sections = mapAt(document.tree);
  const vendorNames = [...mapAt(sections.get("vendors")).keys()];
  const schema = fileSchema(references, { ...options, vendorNames });
  const file = readDocument(document, schema);
  checkPrefixes(document, sections.get("vendors"));
  document.problems.failIfAny();
  if (file === undefined) throw new Error("a file without problems was refused");
  checkFallbackModels(document, file.models);
  checkPriceLists(document, file.models, file.priceLists);
  if (file.alerts !== undefined) checkAlerts(document, { ...file, alerts: file.alerts });
  document.problems.failIfAny();
  const vendors = servedVendors(document, file.vendors, options.kinds);
  const models = servedModels(document, file.models, { vendors, priceLists: file.priceLists });
  return {
    source,
    revision: options.document?.revision,
    document: content,
    hash: hashOf(content),
    isDemo: source === demoSource,
    vendors: configsOf(vendors),
    models,
    priceLists: new Set(file.priceLists.keys()),
    cors: file.cors,
    retention: file.retention,
    webhooks: file.webhooks,
    storage: file.storage,
    console: file.console,
    sms: file.sms,
    smtp: file.smtp,
    alerts: file.alerts,
    limits: file.limits,
    places: placesOf(document, file),
    included: included.map(({ path }) => path),
    warnings: document.problems.warnings(),
  };
}

/** Parses a file and those that it includes. */
function readDocuments(
  source: string,
  text: string,
  included: readonly IncludedFile[],
): ConfigDocument {
  const parts = included.flatMap((file) =>
    file.text === undefined ? [] : [new ConfigDocument(file.source, file.text)],
  );
  const document = new ConfigDocument(source, text, parts);
  for (const [index, { problem }] of included.entries()) {
    if (problem !== "") document.error(["include", index], `the file ${problem}`);
  }
  return document;
}

/**
 * Runs the commands of the configuration, then reads it like {@link loadConfig}.
 *
 * @throws ConfigError with all problems; commands that fail are among them
 */
export async function loadWithCommands(options: LoadOptions): Promise<Config> {
  const { content, folder: cwd } = readSource(options);
  if (!hasCommands(content) || options.document?.isStored === true) return loadConfig(options);
  return loadConfig({ ...options, commands: await runCommands(content, { cwd }) });
}

/** Identifies a document: see `hash` of Config. */
export function hashOf(document: string): string {
  return createHash("sha256").update(document).digest("hex").slice(0, 12);
}

function mapAt(tree: unknown): ReadonlyMap<string, unknown> {
  return tree instanceof Map ? (tree as ReadonlyMap<string, unknown>) : new Map();
}

/**
 * The schema of the whole file.
 *
 * @param facts.vendorNames the names of `vendors:`, in error or not
 * @param facts.needsPrices false while prices are still to be imported. Default true
 */
export function fileSchema(
  references: ReferenceSource,
  {
    kinds,
    vendorNames,
    needsPrices = true,
  }: {
    readonly kinds: ServedKinds;
    readonly vendorNames: readonly string[];
    readonly needsPrices?: boolean | undefined;
  },
) {
  return section(
    {
      version: scalar("1", parseVersion, "add version: 1").meta({ type: "integer", const: 1 }),
      include: references.isStored === true ? absent(storedInclude) : includeSchema,
      vendors: vendorsSchema(references, kinds),
      models: modelsSchema(references, { vendors: vendorNames, needsPrices }),
      price_lists: priceListsSchema.default(new Map()),
      cors: corsSchema(references).default({ origins: [] }),
      retention: retentionSchema.default({ calls: undefined, audit: undefined, export: false }),
      webhooks: webhooksSchema(references).default({ allowHosts: [], caFile: undefined }),
      storage: storageSchema(references).default({ kind: "local" }),
      console: consoleSchema.default({ signUp: true, copyAgain: true }),
      sms: smsSchema(references).optional(),
      smtp: smtpSchema(references).optional(),
      alerts: alertsSchema(references).optional(),
      limits: limitDefaultsSchema.default({ key: undefined, account: undefined, model: undefined }),
    },
    { about: fileKeys },
  );
}

const includeSchema = list(
  scalar("the name of a file", (name) => ({ value: name })).meta({ title: "file" }),
  "names of files",
).optional();

const storedInclude =
  "a configuration that is applied includes no files: `uas apply FILE` merges them";

const fileKeys = {
  include: "Files with further `vendors` and `models`, relative to this file. Default: none.",
  version: "The version of the format: always 1.",
  vendors: "The upstream APIs, by names of your choice.",
  models:
    "What customers can call, by the names that they use: at most 200 letters, digits and `. _ - : @ +`, with single slashes between them.",
  cors: "Web pages that may call the gateway.",
  retention: "How long records are kept.",
  webhooks: "Two settings for tests; do not use them in production.",
  storage: "Where result files of tasks are kept. Default: the data folder.",
  console: "Who can sign in to the [console](console.md).",
  sms: "The provider of one-time codes. Without it, users cannot sign in with a mobile number.",
  price_lists:
    "Other prices, for [accounts that have a list](keys-and-accounts.md#price-lists), by the name of the list.",
  smtp: "The mail server that sends alerts. Without it they are sent as webhooks only.",
  alerts:
    "The addresses that are [alerted](observe.md#alerts-of-the-gateway) when the installation needs its operator. Default: none.",
  limits: "Default [rate limits](keys-and-accounts.md#rate-limits) of keys, accounts and models.",
};

function parseVersion(written: string): Parsed<1> {
  if (written === "1") return { value: 1 };
  return { problem: "this program reads version 1 only; write version: 1" };
}

/** The files and lines of all vendors and models, also of those that are not served. */
function placesOf(
  document: ConfigDocument,
  sections: Readonly<Record<"vendors" | "models", ReadonlyMap<string, unknown>>>,
): ReadonlyMap<string, string> {
  const paths = (["vendors", "models"] as const).flatMap((name) =>
    [...sections[name].keys()].map((key) => [name, key]),
  );
  return new Map(paths.map((path) => [pathText(path), document.placeOf(path)]));
}

function configsOf(vendors: ReadonlyMap<string, VendorEntry>): ReadonlyMap<string, VendorConfig> {
  const configs = new Map<string, VendorConfig>();
  for (const [name, { config }] of vendors) if (config !== undefined) configs.set(name, config);
  return configs;
}

/** The text of a configuration. */
export interface ConfigSource {
  /** The file's name in messages, as the user wrote it. */
  readonly source: string;
  /** The document, with the included files merged into it. */
  readonly content: string;
  /** The file without the included ones. */
  readonly main: string;
  readonly included: readonly IncludedFile[];
  readonly folder: string;
}

/**
 * Reads the text of the configuration.
 *
 * @throws ConfigError if the file cannot be read
 */
export function readSource({
  path,
  document,
  env,
  cwd,
}: Pick<LoadOptions, "path" | "document" | "env" | "cwd">): ConfigSource {
  const named = path ?? (env["UAS_CONFIG"]?.trim() || undefined);
  if (document !== undefined) {
    const folder = dirname(resolve(cwd, named ?? "uas.yaml"));
    return { ...document, main: document.content, included: [], folder };
  }
  if (named === undefined && !existsSync(join(cwd, "uas.yaml"))) {
    return { source: demoSource, content: demoYaml, main: demoYaml, included: [], folder: cwd };
  }
  const source = named ?? "uas.yaml";
  const file = resolve(cwd, source);
  const main = readText(file, source);
  const folder = dirname(file);
  const included = readIncluded({ source, content: main, folder });
  return { source, content: mergeIncluded(main, included), main, included, folder };
}

function readText(file: string, source: string): string {
  try {
    const facts = statSync(file);
    if (facts.isDirectory()) throw new ConfigError([`${source}: is a folder; name the file`]);
    if (facts.size > fileBytesMax) throw new ConfigError([`${source}: is too large`]);
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof TypeError) throw new ConfigError([`${source}: is not valid UTF-8 text`]);
    throw new ConfigError([`${source}: ${readProblem(error)}; name another with UAS_CONFIG`]);
  }
}
