/** Reads channels of new-api: an export of its table, or the answer of `GET /api/channel`. */
import { CliError } from "../failure.ts";
import { type JsonObject, listOf, objectOf, parseExactJson } from "../price-import/genai-prices.ts";
import { azureAddress, cleanAddress, withPath } from "./address.ts";
import { type NewApiVendor, newApiVendors } from "./new-api-vendors.ts";
import { parseJson } from "./read.ts";
import type { Deployment, ImportNote, ImportSource, ListedPrice, Upstream } from "./source.ts";
import { countOf, decimalOf, objectAt, product, textOf, textsOf } from "./values.ts";
import { Variables } from "./variables.ts";

/** Reads a file. @throws CliError if it has no channels */
export function readNewApi(text: string, name: string): ImportSource {
  const root = parseJson(text, name);
  const channels = channelsOf(root);
  if (channels === undefined) {
    const expected = "give an array of channels, or an object with channels or data";
    throw new CliError(`${name}:1: no channels: ${expected} (docs/migrate-from.md)`);
  }
  const reading = new Reading(optionsOf(root));
  reading.noteMissing(countOf(objectAt(root, "data")["total"]) ?? 0, channels.length);
  const deployments = channels.flatMap((channel, index) => reading.deployments(channel, index));
  return {
    deployments,
    fallbacks: new Map(),
    priceLists: reading.priceLists(),
    variables: reading.variables.places,
    notes: reading.notes,
  };
}

/** The channels: the file itself, or its member `channels`, `data` or `data.items`. */
function channelsOf(root: unknown): readonly JsonObject[] | undefined {
  const data = objectOf(root)?.["data"];
  const places = [root, objectOf(root)?.["channels"], data, objectOf(data)?.["items"]];
  const found = places.find((each) => Array.isArray(each));
  const channels = listOf(found).map((each) => objectOf(each));
  const isChannel = (each: JsonObject | undefined): each is JsonObject =>
    each !== undefined && "models" in each && "type" in each;
  return found !== undefined && channels.every(isChannel) ? channels : undefined;
}

/** The options with prices, each parsed. */
function optionsOf(root: unknown): JsonObject {
  const written = objectOf(root)?.["options"];
  const pairs = Array.isArray(written)
    ? listOf(written).map((each) => [textOf(objectOf(each)?.["key"]), objectOf(each)?.["value"]])
    : Object.entries(objectOf(written) ?? {});
  return Object.fromEntries(pairs.map(([key, value]) => [key, parsed(value)])) as JsonObject;
}

/** A map that is written as text of JSON; empty if it is none. */
function parsed(value: unknown): JsonObject {
  const map = objectOf(value);
  if (map !== undefined || typeof value !== "string") return map ?? {};
  try {
    return objectOf(parseExactJson(value)) ?? {};
  } catch {
    return {};
  }
}

/** Members of a channel without a counterpart, and what to do. */
const unread: readonly (readonly [name: string, text: string])[] = [
  ["param_override", "clients send these parameters themselves"],
  ["header_override", "vendors get the gateway's headers only"],
  ["status_code_mapping", "errors are translated to those of the client's API"],
  ["openai_organization", "use a key of this organization's project"],
];

class Reading {
  readonly variables = new Variables();
  readonly notes: ImportNote[] = [];
  readonly #options: JsonObject;

  constructor(options: JsonObject) {
    this.#options = options;
  }

  /** The models of a channel; none if it cannot be imported, which is noted. */
  deployments(channel: JsonObject, index: number): readonly Deployment[] {
    const id = textOf(channel["id"]);
    const place = `channels[${index}]${id === undefined ? "" : ` (id ${id})`}`;
    const isOff = channel["status"] !== undefined && textOf(channel["status"]) !== "1";
    if (isOff) return this.#note(place, "is disabled: left out");
    const vendor = newApiVendors.get(Number(textOf(channel["type"])));
    if (vendor === undefined) {
      const type = countOf(channel["type"]) ?? 0;
      return this.#note(place, `this gateway has no kind for channel type ${type}: left out`);
    }
    const upstream = this.#upstreamOf(vendor, channel, place);
    if (upstream === undefined) return [];
    this.#noteUnread(channel, place);
    const share = {
      place,
      upstream,
      keys: this.#keysOf(channel, upstream, place),
      priority: -Number(decimalOf(channel["priority"]) ?? 0),
      weight: countOf(channel["weight"]) ?? 0,
    };
    const mapping = parsed(channel["model_mapping"]);
    return textsOf(channel["models"]).map((model) => {
      const price = this.#priceOf(model);
      const vendorModel = mapped(model, mapping);
      return { ...share, model, vendorModel, ...(price !== undefined && { price }) };
    });
  }

  /** Notes that an answer of the admin API is one page of several. */
  noteMissing(total: number, count: number): void {
    if (total <= count) return;
    const text = `has ${count} of ${total} channels: put those of all pages (p=2, …) into one array`;
    this.#note("data", text);
  }

  /** Groups whose ratio is not 1, as markups. */
  priceLists(): ReadonlyMap<string, string> {
    const lists = new Map<string, string>();
    for (const [group, ratio] of Object.entries(objectAt(this.#options, "GroupRatio"))) {
      const decimal = decimalOf(ratio);
      if (decimal === undefined || Number(decimal) === 1) continue;
      const markup = Math.round((Number(decimal) - 1) * 10_000) / 100;
      if (markup <= 1_000 && /^[a-z0-9][a-z0-9_-]{0,63}$/.test(group)) {
        lists.set(group, `${markup}%`);
        this.#note(`options.GroupRatio.${group}`, assign(group));
      } else {
        const text = "not a name or markup of a price list: add one under price_lists";
        this.#note(`options.GroupRatio.${group}`, text);
      }
    }
    return lists;
  }

  #upstreamOf(vendor: NewApiVendor, channel: JsonObject, place: string): Upstream | undefined {
    const { preset, kind, path = "" } = vendor;
    const text = textOf(channel["base_url"]);
    const hasAddress =
      preset === undefined ? vendor.baseUrl !== undefined : preset !== "azure-openai";
    if (text === undefined && hasAddress) {
      const baseUrl = vendor.baseUrl === undefined ? undefined : vendor.baseUrl + path;
      return named(preset, kind, baseUrl);
    }
    const clean = text === undefined ? undefined : cleanAddress(text);
    if (clean === undefined) {
      this.#note(place, "base_url is not an http address: left out");
      return undefined;
    }
    if (clean.removed !== "") this.#note(place, `base_url without its ${clean.removed}`);
    if (preset === "azure-openai") return named(preset, kind, azureAddress(clean.baseUrl));
    const baseUrl = withPath(clean.baseUrl, path);
    const isOther = preset === "openai" && URL.parse(baseUrl)?.hostname !== "api.openai.com";
    return isOther ? named(undefined, "openai-compatible", baseUrl) : named(preset, kind, baseUrl);
  }

  /** One variable for each key of the channel. The admin API does not send the keys. */
  #keysOf(channel: JsonObject, upstream: Upstream, place: string): readonly string[] {
    const info = parsed(channel["channel_info"]);
    const isMulti = info["is_multi_key"] === true || textOf(info["is_multi_key"]) === "true";
    const written = textOf(channel["key"]);
    const wish = `${wishOf(channel, upstream)}_api_key`;
    if (written !== undefined) {
      const keys = isMulti ? written.split("\n").filter((key) => key.trim() !== "") : [written];
      const names = keys.map((key) => this.variables.ofLiteral(key.trim(), wish, `${place}: key`));
      return [...new Set(names)];
    }
    if (upstream.preset === "ollama") return [];
    const count = isMulti ? (countOf(info["multi_key_size"]) ?? 1) : 1;
    return Array.from({ length: Math.min(count, 1_000) }, () =>
      this.variables.add(wish, `${place}: key`),
    );
  }

  /** The price for customers: the model ratio in units of 2 USD per 1,000,000 input tokens. */
  #priceOf(model: string): ListedPrice | undefined {
    const option = (name: string) => {
      const values = objectAt(this.#options, name);
      return Object.hasOwn(values, model) ? decimalOf(values[model]) : undefined;
    };
    const fixed = option("ModelPrice");
    if (fixed !== undefined) {
      const calls = product([fixed], 3);
      return new Map([
        ["requests_kcount", calls],
        ["input_mtok", "0"],
        ["output_mtok", "0"],
      ]);
    }
    const [input, output, cached] = ["ModelRatio", "CompletionRatio", "CacheRatio"].map(option);
    if (input === undefined || output === undefined) return undefined;
    return new Map([
      ["input_mtok", product([input, "2"])],
      ["output_mtok", product([input, "2", output])],
      ...(cached === undefined
        ? []
        : [["cache_read_mtok", product([input, "2", cached])] as const]),
    ]);
  }

  #noteUnread(channel: JsonObject, place: string): void {
    for (const [name, text] of unread) {
      const value = textOf(channel[name]) ?? "{}";
      if (value !== "{}") this.#note(place, `${name}: ${text}`);
    }
    const groups = textsOf(channel["group"]);
    if (groups.length === 0 || groups.includes("default")) return;
    const text = `serves only ${groups.join(", ")}: here every account can use it; limit keys by models`;
    this.#note(place, text);
  }

  #note(place: string, text: string): readonly never[] {
    this.notes.push({ place, text });
    return [];
  }
}

function assign(group: string): string {
  return `is a price list: give it to accounts by uas account price-list (${group})`;
}

function named(
  preset: string | undefined,
  kind: string | undefined,
  baseUrl: string | undefined,
): Upstream {
  return {
    ...(preset !== undefined && { preset }),
    ...(kind !== undefined && { kind }),
    ...(baseUrl !== undefined && { baseUrl }),
  };
}

/** The vendor's name of a model. A mapping may lead to another mapping. */
function mapped(model: string, mapping: JsonObject): string {
  let name = model;
  for (const seen = new Set<string>(); Object.hasOwn(mapping, name) && !seen.has(name); ) {
    seen.add(name);
    name = textOf(mapping[name]) ?? name;
  }
  return name;
}

/** A word for the variable: never the name of the channel, which may contain its key. */
function wishOf(channel: JsonObject, { preset, kind = "vendor" }: Upstream): string {
  const id = textOf(channel["id"]);
  const word = preset ?? (kind === "openai-compatible" ? "channel" : kind);
  return id === undefined ? word : `${word}_${id}`;
}
