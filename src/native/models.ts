/**
 * Finds and lists the models of native requests, by the platform's names or the vendor's, and
 * checks types and units. Pure.
 */
import type { JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { UnitUsage } from "../billing/prices/cost.ts";
import type { ModelConfig, RouteConfig } from "../config/config.ts";
import { modelTypeWord } from "../config/kinds.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import type {
  NativeListedModel,
  NativeMeter,
  NativeModelAt,
  NativeRequest,
} from "../provider/native.ts";

/** A model, and its route to the vendor. */
export interface NativeModel {
  readonly model: ModelConfig;
  readonly route: RouteConfig;
  /**
   * The version of the model that the client named, as it was sent. Undefined for the configured
   * one.
   */
  readonly version?: string;
}

/** Finds the model of a vendor by a name; undefined if there is none. */
export type FindNativeModel = (vendor: string, name: string) => NativeModel | undefined;

/**
 * Creates the lookup. The platform's names take precedence; of models with the same vendor name,
 * the first of the file.
 */
export function createFindNativeModel(models: Iterable<ModelConfig>): FindNativeModel {
  const found = new Map<string, NativeModel>();
  const place = (vendor: string, name: string): string => JSON.stringify([vendor, name]);
  const all = [...models].flatMap((model) => model.routes.map((route) => ({ model, route })));
  for (const each of all.toReversed()) {
    const { vendor, model: name } = each.route;
    found.set(place(vendor, name), each);
    // A version alone also identifies its model. So does the name, for properties that all versions
    // share.
    const [, unversioned = "", version] = /^(.*:)([0-9a-f]{64})$/.exec(name) ?? [];
    if (version === undefined) continue;
    found.set(place(vendor, version), each);
    found.set(place(vendor, unversioned), each);
  }
  for (const each of all.toReversed()) found.set(place(each.route.vendor, each.model.key), each);
  return (vendor, name) => found.get(place(vendor, name));
}

/**
 * The models of a vendor that a native request can name, one entry for each name. @param models
 * those that the caller may use
 */
export function listNative(
  find: FindNativeModel,
  vendor: string,
  models: readonly ModelConfig[],
): readonly NativeListedModel[] {
  const listed = new Map<string, NativeListedModel>();
  for (const model of models) {
    for (const route of model.routes.filter((each) => each.vendor === vendor)) {
      const isOwn = find(vendor, route.model)?.model === model;
      const name = isOwn ? route.model : model.key;
      listed.set(name, { name, model });
    }
  }
  return [...listed.values()];
}

/** 404 for a model that this vendor does not serve. */
export function noSuchModel(name: string): GatewayError {
  const shown = name.length <= 100 ? name : `${name.slice(0, 100)}…`;
  return new GatewayError(
    ErrorCode.MODEL_NOT_FOUND,
    `The model \`${shown}\` does not exist here: name one that GET /v1/models lists and that this vendor serves`,
    { param: "model" },
  );
}

/** The model name of a request, without its prefix. */
export interface NamedModel {
  readonly name: string;
  /** The body member that contains it; undefined if it is in the path. */
  readonly member?: string;
  /** The prefix before it, such as `models/`. */
  readonly prefix: string;
}

/** Reads the model name of a request, and finds the model. @throws GatewayError INVALID_REQUEST */
export function findNamed(
  request: NativeRequest,
  at: NativeModelAt,
  find: ModelLookup["find"],
): { readonly named: NamedModel; readonly found: NativeModel | undefined } {
  const named = namedModel(request, at);
  const isAnyVersion = at.in === "path" && at.isAnyVersion === true;
  const found = find(named.name) ?? (isAnyVersion ? find(`${named.name}:`) : undefined);
  const selected = at.in === "path" && at.selector ? request.member(at.selector) : undefined;
  if (typeof selected !== "string") return { named, found };
  const name = `${named.name}/${selected}`;
  const inner = find(name);
  if (inner?.route.model === name) return { named: { ...named, name }, found: inner };
  // The price of the app is not the price of each of its language models.
  const isOther = found === undefined || found.model.type === ModelType.TEXT;
  return isOther ? { named: { ...named, name }, found: undefined } : { named, found };
}

/** Reads the model name of a request. @throws GatewayError INVALID_REQUEST */
function namedModel(request: NativeRequest, at: NativeModelAt): NamedModel {
  if (at.in === "path") return { name: request.groups[at.group] ?? "", prefix: "" };
  const [usual = "model"] = at.members;
  const named = at.members.filter((name) => (request.member(name) ?? null) !== null);
  const [member = usual, other] = named;
  if (other !== undefined) throw invalid(other, `Send "${member}" or "${other}", not both`);
  const value: JsonValue | undefined = request.member(member);
  if (typeof value !== "string" || value === "") {
    throw invalid(member, `"${member}" must name a model`);
  }
  const { prefix = "" } = at;
  return value.startsWith(prefix)
    ? { name: value.slice(prefix.length), member, prefix }
    : { name: value, member, prefix: "" };
}

/** Options of a model lookup. */
interface ModelLookup {
  readonly find: (name: string) => NativeModel | undefined;
  /** @throws GatewayError MODEL_NOT_FOUND, ACCESS_DENIED */
  readonly authorize: (key: string) => ModelConfig;
}

/**
 * The model of a request, if the caller may use it. @throws GatewayError MODEL_NOT_FOUND,
 * ACCESS_DENIED
 */
export function checkedModel(
  request: NativeRequest,
  at: NativeModelAt,
  { find, authorize }: ModelLookup,
): NativeModel & { readonly named: NamedModel } {
  const { named, found } = findNamed(request, at, find);
  if (found === undefined) throw noSuchModel(named.name);
  authorize(found.model.key);
  return { ...found, named };
}

/** Checks that a route serves a model's type. @throws GatewayError INVALID_REQUEST */
export function checkModel({ key, type }: ModelConfig, types: readonly ModelType[]): void {
  if (types.includes(type)) return;
  const can = types.map(modelTypeWord).join(" and ");
  const text = `The model \`${key}\` is of type ${modelTypeWord(type)}; this path serves ${can} models`;
  throw invalid("model", text);
}

/** The billable units of a reply so far; undefined if it has tokens only. */
export function madeUnits({ images, seconds = 0 }: NativeMeter): UnitUsage | undefined {
  const units = unitsOf({ images, seconds });
  return Object.keys(units).length === 0 ? undefined : units;
}

/** The units above 0. */
export function unitsOf({ images, seconds }: Pick<UnitUsage, "images" | "seconds">): UnitUsage {
  return { ...(images ? { images } : {}), ...(seconds ? { seconds } : {}) };
}

/** The texts of a request to speak: the members with the usual names, otherwise every text. */
export function spokenTexts(request: NativeRequest): readonly string[] {
  const named = request.mentions("text", "prompt");
  return named.length > 0 ? named : request.mentions();
}
