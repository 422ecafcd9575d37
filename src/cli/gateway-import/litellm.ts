/** Reads `config.yaml` of LiteLLM's proxy. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { CliError } from "../failure.ts";
import { type JsonObject, listOf, objectOf } from "../price-import/genai-prices.ts";
import { azureAddress, cleanAddress, withPath } from "./address.ts";
import { unreadMembers } from "./litellm-notes.ts";
import { type LitellmVendor, litellmModel, litellmVendor, upstreamOf } from "./litellm-vendors.ts";
import { parseYaml, type YamlFile } from "./read.ts";
import type { Deployment, ImportNote, ImportSource, ListedPrice } from "./source.ts";
import { countOf, decimalOf, objectAt, product, textOf, textsOf } from "./values.ts";
import { Variables } from "./variables.ts";

/** Reads a file. @throws CliError if it is no configuration of LiteLLM */
export function readLitellm(text: string, name: string): ImportSource {
  const file = parseYaml(text, name);
  const root = objectOf(file.value);
  const list = root?.["model_list"];
  if (root === undefined || typeof list !== "object" || list === null) {
    const line = file.lineOf(["model_list"]) ?? 1;
    throw new CliError(`${name}:${line}: no model_list: give the config.yaml of LiteLLM's proxy`);
  }
  const reading = new Reading(root, file);
  const deployments = entriesOf(list).flatMap(({ entry, key }) => reading.deployment(entry, key));
  return {
    deployments: [...deployments, ...aliases(root, deployments)],
    fallbacks: fallbacksOf(root, deployments),
    priceLists: new Map(),
    variables: reading.variables.places,
    notes: [...reading.notes, ...settingNotes(root, file)],
  };
}

interface Entry {
  readonly entry: JsonObject;
  readonly key: string | number;
}

/** The entries of a list, or of a map by the name of the model. */
function entriesOf(list: object): readonly Entry[] {
  if (Array.isArray(list)) {
    return listOf(list).map((each, key) => ({ entry: objectOf(each) ?? {}, key }));
  }
  return Object.entries(list).map(([key, each]) => ({
    entry: { model_name: key, ...objectOf(each) },
    key,
  }));
}

/** Members of `litellm_params` that are read, or that need no note. */
const readParams: ReadonlySet<string> = new Set([
  "model",
  "api_base",
  "base_url",
  "api_key",
  "api_version",
  "custom_llm_provider",
  "litellm_credential_name",
  "rpm",
  "tpm",
  "weight",
  "order",
  "input_cost_per_token",
  "output_cost_per_token",
  "tags",
]);

class Reading {
  readonly variables = new Variables();
  readonly notes: ImportNote[] = [];
  readonly #root: JsonObject;
  readonly #file: YamlFile;

  constructor(root: JsonObject, file: YamlFile) {
    this.#root = root;
    this.#file = file;
  }

  /** The deployment of an entry; none if it cannot be imported, which is noted. */
  deployment(entry: JsonObject, key: string | number): readonly Deployment[] {
    const line = this.#file.lineOf(["model_list", key]);
    const place = `model_list[${key}]${line === undefined ? "" : ` (line ${line})`}`;
    const params = this.#paramsOf(entry);
    const written = textOf(params["model"]);
    if (written === undefined)
      return this.#note(place, "litellm_params.model is missing: left out");
    const { prefix, name } = litellmModel(written, textOf(params["custom_llm_provider"]));
    const vendor = litellmVendor(prefix) ?? compatible(prefix, params);
    if (vendor === undefined) {
      const shown = prefix === "" ? "a vendor that its name does not say" : prefix;
      const text = `this gateway has no kind for ${shown}: left out; use another vendor of the model`;
      return this.#note(place, text);
    }
    const address = this.#addressOf(params, vendor, place);
    if (address === null) return [];
    this.#noteParams(params, place);
    return [this.#build({ entry, params, place, vendor, prefix, name, address })];
  }

  #build(found: Found): Deployment {
    const { entry, params, place, vendor, prefix, name, address } = found;
    const info = { ...params, ...objectAt(entry, "model_info") };
    const baseUrl = baseUrlOf(vendor, prefix, address);
    const type = typeOf(info["mode"]);
    const weight = decimalOf(params["weight"]);
    const [rpm, tpm] = ["rpm", "tpm"].map((limit) => countOf(params[limit] ?? entry[limit]));
    const maxOutputTokens =
      countOf(objectAt(entry, "model_info")["max_output_tokens"]) ??
      countOf(objectAt(entry, "model_info")["max_tokens"]);
    const cost = costOf(info);
    return {
      place,
      model: textOf(entry["model_name"]) ?? name,
      upstream: upstreamOf(vendor, baseUrl),
      vendorModel: name,
      keys: this.#keysOf(params, vendor, place),
      priority: countOf(params["order"]) ?? 0,
      ...(weight !== undefined && { weight: Number(weight) }),
      ...(rpm !== undefined && { rpm }),
      ...(tpm !== undefined && { tpm }),
      ...(type !== undefined && { type }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(cost !== undefined && { cost }),
    };
  }

  /** The parameters with those of a named credential. */
  #paramsOf(entry: JsonObject): JsonObject {
    const params = objectAt(entry, "litellm_params");
    const named = textOf(params["litellm_credential_name"]);
    const credentials = listOf(this.#root["credential_list"]).map((each) => objectOf(each) ?? {});
    const found = credentials.find(({ credential_name: name }) => textOf(name) === named);
    return named === undefined ? params : { ...objectAt(found, "credential_values"), ...params };
  }

  /** Undefined if there is none; null if it is none, which is noted. */
  #addressOf(
    params: JsonObject,
    { preset, kind }: LitellmVendor,
    place: string,
  ): string | undefined | null {
    // LiteLLM reads this variable if an Azure deployment has no address.
    const usual = preset === "azure-openai" ? "os.environ/AZURE_API_BASE" : undefined;
    const text = textOf(params["api_base"] ?? params["base_url"]) ?? usual;
    if (text === undefined) {
      if (kind === undefined) return undefined;
      this.#note(place, "api_base is missing: left out");
      return null;
    }
    const reference = referenceOf(text);
    if (reference !== undefined) {
      return `\${env:${this.variables.ofReference(reference, `${place}: api_base`)}}`;
    }
    const clean = cleanAddress(text);
    if (clean === undefined) {
      this.#note(place, "api_base is not an http address: left out");
      return null;
    }
    if (clean.removed !== "") {
      this.#note(place, `api_base without its ${clean.removed}: put a credential into api_key`);
    }
    return clean.baseUrl;
  }

  #keysOf(params: JsonObject, vendor: LitellmVendor, place: string): readonly string[] {
    const written = textOf(params["api_key"]);
    const where = `${place}: api_key`;
    if (written === undefined) {
      return vendor.variable === undefined
        ? []
        : [this.variables.ofReference(vendor.variable, where)];
    }
    const reference = referenceOf(written);
    if (reference !== undefined) return [this.variables.ofReference(reference, where)];
    const wish = vendor.variable ?? `${vendor.preset ?? "vendor"}_api_key`;
    return [this.variables.ofLiteral(written, wish, where)];
  }

  #noteParams(params: JsonObject, place: string): void {
    const unread = Object.keys(params).filter(
      (name) => !readParams.has(name) && !/_cost_per_/.test(name),
    );
    if (unread.length === 0) return;
    const text = `litellm_params ${unread.join(", ")}: not imported; clients send such members themselves, and timeouts belong to the vendor`;
    this.#note(place, text);
  }

  #note(place: string, text: string): readonly never[] {
    this.notes.push({ place, text });
    return [];
  }
}

interface Found {
  readonly entry: JsonObject;
  readonly params: JsonObject;
  readonly place: string;
  readonly vendor: LitellmVendor;
  readonly prefix: string;
  readonly name: string;
  readonly address: string | undefined;
}

/** A name without a known vendor at an address: a server of OpenAI's API. */
function compatible(prefix: string, params: JsonObject): LitellmVendor | undefined {
  const hasAddress = textOf(params["api_base"] ?? params["base_url"]) !== undefined;
  return prefix === "" && hasAddress ? { kind: "openai-compatible" } : undefined;
}

function baseUrlOf({ path }: LitellmVendor, prefix: string, address: string | undefined) {
  if (address === undefined) return undefined;
  if (prefix === "azure") return azureAddress(address);
  return path === undefined ? address : withPath(address, path);
}

/** The variable of `os.environ/NAME`. */
function referenceOf(text: string): string | undefined {
  return /^os\.environ\/(.+)$/.exec(text)?.[1];
}

const modes: ReadonlyMap<string, ModelType> = new Map([
  ["chat", ModelType.TEXT],
  ["completion", ModelType.TEXT],
  ["responses", ModelType.TEXT],
  ["embedding", ModelType.EMBEDDING],
  ["image_generation", ModelType.IMAGE],
  ["image_edit", ModelType.IMAGE],
  ["video_generation", ModelType.VIDEO],
  ["audio_speech", ModelType.AUDIO],
  ["audio_transcription", ModelType.AUDIO],
  ["rerank", ModelType.RERANK],
  ["moderation", ModelType.MODERATION],
]);

function typeOf(mode: unknown): ModelType | undefined {
  return modes.get(textOf(mode) ?? "");
}

/** LiteLLM's names of costs, with the field of genai-prices and the power of ten between them. */
const costs: readonly (readonly [name: string, field: string, powerOfTen: number])[] = [
  ["input_cost_per_token", "input_mtok", 6],
  ["output_cost_per_token", "output_mtok", 6],
  ["cache_read_input_token_cost", "cache_read_mtok", 6],
  ["cache_creation_input_token_cost", "cache_write_mtok", 6],
  ["output_cost_per_reasoning_token", "output_reasoning_mtok", 6],
  ["input_cost_per_audio_token", "input_audio_mtok", 6],
  ["output_cost_per_audio_token", "output_audio_mtok", 6],
  ["input_cost_per_request", "requests_kcount", 3],
  ["input_cost_per_query", "requests_kcount", 3],
];

function costOf(info: JsonObject): ListedPrice | undefined {
  const found = costs.flatMap(([name, field, powerOfTen]) => {
    const usd = decimalOf(info[name]);
    return usd === undefined ? [] : [[field, product([usd], powerOfTen)] as const];
  });
  return found.length === 0 ? undefined : new Map(found);
}

/** Further names of models: `model_group_alias` of the router. */
function aliases(root: JsonObject, deployments: readonly Deployment[]): readonly Deployment[] {
  const written = objectAt(objectAt(root, "router_settings"), "model_group_alias");
  return Object.entries(written).flatMap(([alias, target]) => {
    const name = textOf(objectOf(target)?.["model"] ?? target);
    const found = deployments.filter(({ model }) => model === name && !model.includes("*"));
    return found.map((deployment) => ({ ...deployment, model: alias }));
  });
}

/** Fallbacks, as a list of maps or as one map, in either section. */
function fallbacksOf(
  root: JsonObject,
  deployments: readonly Deployment[],
): ReadonlyMap<string, readonly string[]> {
  const sections = ["litellm_settings", "router_settings"].map((name) => objectAt(root, name));
  const found = new Map<string, readonly string[]>();
  const anyway = sections.flatMap(({ default_fallbacks: names }) => textsOf(names));
  if (anyway.length > 0) for (const { model } of deployments) found.set(model, anyway);
  for (const { fallbacks } of sections) {
    const maps = Array.isArray(fallbacks) ? listOf(fallbacks) : [fallbacks];
    for (const [model, names] of maps.flatMap((map) => Object.entries(objectOf(map) ?? {}))) {
      found.set(model, textsOf(names));
    }
  }
  return found;
}

const readSettings: ReadonlySet<string> = new Set([
  "model_list",
  "credential_list",
  "fallbacks",
  "default_fallbacks",
  "model_group_alias",
]);

const sectionNames: ReadonlySet<string> = new Set([
  "litellm_settings",
  "router_settings",
  "general_settings",
]);

function settingNotes(root: JsonObject, { lineOf }: YamlFile): readonly ImportNote[] {
  const top = unreadMembers(root, "", {
    read: new Set([...readSettings, ...sectionNames]),
    lineOf: (name) => lineOf([name]),
  });
  const inner = [...sectionNames].flatMap((section) =>
    unreadMembers(root[section], section, {
      read: readSettings,
      lineOf: (name) => lineOf([section, name]),
    }),
  );
  return [...top, ...inner];
}
