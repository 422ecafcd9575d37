/** Reads the configuration file: strict, and with everything that is wrong reported at once. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Config, VendorConfig, WebhookConfig } from "./config.ts";
import { demoSource, demoYaml } from "./demo.ts";
import type { ServedKinds } from "./kinds.ts";
import { readModels } from "./model-section.ts";
import { ConfigError } from "./problems.ts";
import {
  type Entry,
  type Reader,
  fields,
  items,
  members,
  report,
  required,
  rootEntry,
  scalarText,
} from "./reader.ts";
import { type ReferenceSource, readProblem } from "./references.ts";
import { readStorage } from "./storage-section.ts";
import { readConsole, readSms } from "./sign-in-section.ts";
import { shown, text } from "./values.ts";
import { type VendorEntry, readVendors } from "./vendor-section.ts";
import { parseYaml } from "./yaml-file.ts";

/** What {@link loadConfig} reads from. */
export interface LoadOptions {
  /** The file, absolute or relative to `cwd`. Default: `UAS_CONFIG`, else `uas.yaml` in `cwd`, else the
   * built-in demo. */
  readonly path?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** What this version can serve. The rest of what the file may name becomes warnings. */
  readonly kinds: ServedKinds;
  /**
   * What to do where `${env:…}` or `${file:…}` cannot be resolved. Default `refuse`. `placeholder` is for
   * commands that ask no vendor: they also work in a shell that lacks the vendors' secrets.
   */
  readonly unresolved?: "refuse" | "placeholder";
}

/** The largest configuration file, in bytes. */
const fileBytesMax = 4 * 1024 * 1024;

/** Stands for what cannot be resolved: a name that no resolver finds. */
const placeholder = "unresolved.invalid";

/**
 * Reads and checks the configuration.
 *
 * @throws ConfigError with all problems, as `file:line:col path: message`
 */
export function loadConfig(options: LoadOptions): Config {
  const { source, content, folder } = readSource(options);
  const references: ReferenceSource = {
    env: options.env,
    folder,
    placeholder: options.unresolved === "placeholder" ? placeholder : undefined,
  };
  const reader: Reader = { ...parseYaml(source, content), references };
  const parts = readParts(reader, options.kinds);
  reader.problems.failIfAny();
  return {
    source,
    isDemo: source === demoSource,
    ...parts,
    warnings: reader.problems.warnings(),
  };
}

const sections = ["vendors", "models", "webhooks", "storage", "console", "sms"] as const;

function readParts(
  reader: Reader,
  kinds: ServedKinds,
): Pick<Config, (typeof sections)[number] | "lines"> {
  const root = rootEntry(reader);
  const given = fields(reader, root, ["version", ...sections]);
  const versionFix = "add version: 1";
  const version = required(reader, root, { from: given, name: "version", fix: versionFix });
  if (version !== undefined && scalarText(reader, version, "1") !== "1") {
    report(reader, version, "this program reads version 1 only; write version: 1");
  }
  const vendorsFix = "add the upstream APIs to use";
  const modelsFix = "add the models that customers can call";
  const vendorSection = required(reader, root, { from: given, name: "vendors", fix: vendorsFix });
  const modelSection = required(reader, root, { from: given, name: "models", fix: modelsFix });
  const vendors = vendorSection ? readVendors(reader, vendorSection, kinds) : new Map();
  const models = modelSection ? readModels(reader, modelSection, vendors) : new Map();
  if (modelSection !== undefined && models.size === 0) {
    const message = "no model can be called: every call will answer 404";
    reader.problems.warn(modelSection.place, modelSection.path, message);
  }
  return {
    vendors: servedVendors(vendors),
    models,
    webhooks: readWebhooks(reader, given.webhooks),
    storage: readStorage(reader, given.storage),
    console: readConsole(reader, given.console),
    sms: given.sms && readSms(reader, given.sms),
    lines: new Map([vendorSection, modelSection].flatMap((each) => linesOf(reader, each))),
  };
}

/** Where the members of a section begin. */
function linesOf(reader: Reader, section: Entry | undefined): [path: string, line: number][] {
  if (section === undefined) return [];
  return members(reader, section, "entries").map(({ value, keyPlace }) => [
    value.path,
    reader.problems.lineOf(keyPlace),
  ]);
}

function servedVendors(
  vendors: ReadonlyMap<string, VendorEntry>,
): ReadonlyMap<string, VendorConfig> {
  const served = new Map<string, VendorConfig>();
  for (const [name, { config }] of vendors) if (config !== undefined) served.set(name, config);
  return served;
}

function readWebhooks(reader: Reader, entry: Entry | undefined): WebhookConfig {
  if (entry === undefined) return { allowHosts: [], caFile: undefined };
  const given = fields(reader, entry, ["allow_hosts", "ca_file"]);
  const hosts = given.allow_hosts ? items(reader, given.allow_hosts, "host names") : [];
  return {
    allowHosts: hosts.flatMap((host) => readHost(reader, host) ?? []),
    caFile: given.ca_file && readCaFile(reader, given.ca_file),
  };
}

function readHost(reader: Reader, entry: Entry): string | undefined {
  const host = text(reader, entry, 253)?.toLowerCase();
  if (host === undefined || /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/.test(host))
    return host;
  report(
    reader,
    entry,
    `${shown(host)} is no exact host: write its name or address only, such as hooks.test`,
  );
  return undefined;
}

function readCaFile(reader: Reader, entry: Entry): string | undefined {
  const written = text(reader, entry, 4_000);
  if (written === undefined || written.includes(placeholder)) return written;
  const file = resolve(reader.references.folder, written);
  try {
    readFileSync(file);
  } catch (error) {
    report(reader, entry, `file ${file} ${readProblem(error)}`);
  }
  return file;
}

interface Source {
  /** How the file is called in messages: as it was named. */
  readonly source: string;
  readonly content: string;
  readonly folder: string;
}

function readSource({ path, env, cwd }: LoadOptions): Source {
  const named = path ?? (env["UAS_CONFIG"]?.trim() || undefined);
  if (named === undefined && !existsSync(join(cwd, "uas.yaml"))) {
    return { source: demoSource, content: demoYaml, folder: cwd };
  }
  const source = named ?? "uas.yaml";
  const file = resolve(cwd, source);
  return { source, content: readText(file, source), folder: dirname(file) };
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
