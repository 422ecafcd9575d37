/** Reads `models:` of a configuration. */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { DatedPrice, ModelConfig, RouteConfig } from "./config.ts";
import { holdOutputTokensDefault } from "./limits.ts";
import { cancelBillings, modelTypeWord, modelTypes } from "./kinds.ts";
import { priceFix, readPrices } from "./price-section.ts";
import {
  type Entry,
  type Fields,
  type Member,
  type Reader,
  fields,
  items,
  members,
  report,
  required,
} from "./reader.ts";
import { hint } from "./suggest.ts";
import { durationMs, positive, shown, text, word } from "./values.ts";
import type { VendorEntry } from "./vendor-section.ts";

const keys = [
  "type",
  "name",
  "routes",
  "max_output_tokens",
  "hold_output_tokens",
  "deadline",
  "min_seconds",
  "cancel_billing",
  "price",
] as const;
type ModelFields = Fields<(typeof keys)[number]>;
type Vendors = ReadonlyMap<string, VendorEntry>;

/** Reads all models that this version can serve, by key. The others are named in warnings. */
export function readModels(
  reader: Reader,
  section: Entry,
  vendors: Vendors,
): ReadonlyMap<string, ModelConfig> {
  const models = new Map<string, ModelConfig>();
  for (const member of members(reader, section, "models by name")) {
    checkKey(reader, section, member);
    const model = readModel(reader, member, vendors);
    if (model !== undefined) models.set(member.key, model);
  }
  return models;
}

function checkKey(reader: Reader, section: Entry, { key, keyPlace }: Member): void {
  // It stands in paths (/v1/models/{modelId}) and in comma separated lists.
  const isPlain = key.length <= 200 && /^[A-Za-z0-9][\w.:@+-]*(\/[\w.:@+-]+)*$/.test(key);
  const hasDots = key.split("/").some((segment) => segment === "." || segment === "..");
  if (isPlain && !hasDots) return;
  const allowed = "letters, digits and . _ - : @ + with single slashes between, at most 200";
  reader.problems.error(keyPlace, section.path, `${shown(key)} is no model name: it is ${allowed}`);
}

function readModel(
  reader: Reader,
  { key, value: entry }: Member,
  vendors: Vendors,
): ModelConfig | undefined {
  const given = fields(reader, entry, keys);
  const typeWord = readType(reader, entry, given);
  const type = typeWord === undefined ? undefined : modelTypes.get(typeWord);
  const routes = readRoutes(reader, entry, { given, typeWord, type, vendors });
  const name = (given.name && text(reader, given.name, 200)) ?? key;
  const prices = readModelPrices(reader, entry, { given, typeWord });
  const maxOutputTokens = readMaxOutputTokens(reader, entry, { given, type });
  const held = given.hold_output_tokens && positive(reader, given.hold_output_tokens);
  const holdOutputTokens = Math.min(held ?? holdOutputTokensDefault, maxOutputTokens);
  const deadlineMs = given.deadline && durationMs(reader, given.deadline);
  const minSeconds = readMinSeconds(reader, given, type);
  const billed =
    given.cancel_billing && word(reader, given.cancel_billing, [...cancelBillings.keys()]);
  const cancelBilling = cancelBillings.get(billed ?? "");
  if (type === undefined || prices === undefined || routes.length === 0) return undefined;
  const limits = { maxOutputTokens, holdOutputTokens, deadlineMs, minSeconds };
  return { key, name, type, routes, ...limits, cancelBilling, prices };
}

function readType(reader: Reader, entry: Entry, given: ModelFields): string | undefined {
  const words = [...modelTypes.keys()];
  const fix = `name one of ${words.join(", ")}`;
  const value = required(reader, entry, { from: given, name: "type", fix });
  return value && word(reader, value, words);
}

function readModelPrices(
  reader: Reader,
  entry: Entry,
  found: { readonly given: ModelFields; readonly typeWord: string | undefined },
): readonly DatedPrice[] | undefined {
  const fix = priceFix(found.typeWord);
  const value = required(reader, entry, { from: found.given, name: "price", fix });
  return value && readPrices(reader, value, found.typeWord);
}

function readMaxOutputTokens(
  reader: Reader,
  entry: Entry,
  { given, type }: { readonly given: ModelFields; readonly type: ModelType | undefined },
): number {
  const name = "max_output_tokens";
  if (type === ModelType.TEXT) {
    const fix = "add the most tokens of one reply: what is held while a call runs depends on it";
    required(reader, entry, { from: given, name, fix });
  }
  return (given[name] && positive(reader, given[name])) ?? 0;
}

/** What has a length. */
const timedTypes: ReadonlySet<ModelType> = new Set([ModelType.VIDEO, ModelType.AUDIO]);

function readMinSeconds(
  reader: Reader,
  { min_seconds: entry }: ModelFields,
  type: ModelType | undefined,
): number | undefined {
  if (entry === undefined) return undefined;
  if (type !== undefined && !timedTypes.has(type)) {
    const what = modelTypeWord(type);
    report(reader, entry, `a ${what} model makes nothing of a length: leave it out`);
  }
  return positive(reader, entry);
}

interface RouteContext {
  readonly given: ModelFields;
  readonly typeWord: string | undefined;
  readonly type: ModelType | undefined;
  readonly vendors: Vendors;
}

/** The routes that this version can serve. Empty: none, which is then a problem or warning already. */
function readRoutes(reader: Reader, entry: Entry, context: RouteContext): readonly RouteConfig[] {
  const fix = "add routes: [{ vendor: …, model: … }], the vendor and its own name of the model";
  const list = required(reader, entry, { from: context.given, name: "routes", fix });
  if (list === undefined) return [];
  const routeEntries = items(reader, list, "routes { vendor, model }");
  if (routeEntries.length === 0) report(reader, list, "name at least one route");
  const served: RouteConfig[] = [];
  const unserved: { readonly entry: Entry; readonly reason: string }[] = [];
  const seen = new Set<string>();
  for (const item of routeEntries) {
    const route = readRoute(reader, item, context);
    if (route === undefined) continue;
    const id = JSON.stringify([route.vendor, route.model]);
    if (seen.has(id)) report(reader, item, "this route is listed twice; keep one");
    seen.add(id);
    const reason = unservedReason(context, route);
    if (reason === undefined) served.push(route);
    else unserved.push({ entry: item, reason });
  }
  warnUnserved(reader, entry, { unserved, isAny: served.length > 0 });
  return served;
}

function warnUnserved(
  reader: Reader,
  model: Entry,
  found: {
    readonly unserved: readonly { readonly entry: Entry; readonly reason: string }[];
    readonly isAny: boolean;
  },
): void {
  const { unserved, isAny } = found;
  if (isAny) {
    for (const { entry, reason } of unserved) {
      reader.problems.warn(
        entry.place,
        entry.path,
        `not used: this version cannot serve ${reason} yet`,
      );
    }
  } else if (unserved.length > 0) {
    const reasons = [...new Set(unserved.map(({ reason }) => reason))].join("; ");
    const message = `not listed, calls answer 404: this version cannot serve ${reasons} yet`;
    reader.problems.warn(model.place, model.path, message);
  }
}

function readRoute(
  reader: Reader,
  entry: Entry,
  { typeWord, vendors }: RouteContext,
): RouteConfig | undefined {
  const given = fields(reader, entry, ["vendor", "model", "cost"]);
  const vendorFix = "name one of vendors:";
  const vendorEntry = required(reader, entry, { from: given, name: "vendor", fix: vendorFix });
  const modelFix = "add the vendor's own name of the model";
  const modelEntry = required(reader, entry, { from: given, name: "model", fix: modelFix });
  const vendor = vendorEntry && readVendorName(reader, vendorEntry, vendors);
  const model = modelEntry && text(reader, modelEntry, 300);
  const costs = given.cost && readPrices(reader, given.cost, typeWord);
  if (vendor === undefined || model === undefined) return undefined;
  return costs === undefined ? { vendor, model } : { vendor, model, costs };
}

function readVendorName(reader: Reader, entry: Entry, vendors: Vendors): string | undefined {
  const name = text(reader, entry, 64);
  if (name === undefined || vendors.has(name)) return name;
  const names = [...vendors.keys()];
  const have = names.length === 0 ? "none" : names.join(", ");
  const near = hint(name, names).startsWith(", did") ? hint(name, names) : "";
  report(reader, entry, `no vendor ${shown(name)}${near} (have: ${have})`);
  return undefined;
}

function unservedReason({ vendors, type }: RouteContext, route: RouteConfig): string | undefined {
  const vendor = vendors.get(route.vendor);
  if (vendor?.unserved !== undefined) return `${vendor.unserved} (vendor ${shown(route.vendor)})`;
  if (type === undefined || vendor?.modelTypes === undefined) return undefined;
  if (vendor.modelTypes.includes(type)) return undefined;
  return `${modelTypeWord(type)} models of vendor ${shown(route.vendor)}`;
}
