/** Members of a body that are about routing: read, and taken out before a vendor sees it. */
import { invalid } from "../core/validation.ts";
import { asBuffer } from "../core/bytes.ts";
import type { Outline } from "../dialect/json/outline.ts";
import { readPreferences, type RoutePreferences } from "./routing/preferences.ts";

/** What a request says about routing. */
export interface RoutingWishes {
  readonly preferences?: RoutePreferences | undefined;
  /** Models that take the call when all routes of its model fail, in order. Default: those of the configuration. */
  readonly models?: readonly string[] | undefined;
}

/** The most models that a request may name. */
const modelsMax = 10;

/** Whether a body has such members. Nearly all have none. */
export function hasRoutingMembers({ members }: Outline): boolean {
  return members.some(({ key }) => key === "provider" || key === "models");
}

/** Reads the members, and returns the body without them. @throws GatewayError INVALID_REQUEST */
export function takeRoutingMembers(
  body: Uint8Array,
  { members }: Outline,
): RoutingWishes & { readonly body: Buffer } {
  const bytes = asBuffer(body);
  const kept: Buffer[] = [];
  let preferences: RoutePreferences | undefined;
  let models: readonly string[] | undefined;
  for (const { key, keyStart, valueStart, valueEnd } of members) {
    const value = (): string => bytes.toString("utf8", valueStart, valueEnd);
    if (key === "provider") preferences = readPreferences(value(), "provider");
    else if (key === "models") models = readModels(value());
    else kept.push(Buffer.from(kept.length === 0 ? "" : ","), bytes.subarray(keyStart, valueEnd));
  }
  return {
    preferences,
    models,
    body: Buffer.concat([Buffer.from("{"), ...kept, Buffer.from("}")]),
  };
}

function readModels(json: string): readonly string[] {
  const models: unknown = JSON.parse(json);
  const isList = Array.isArray(models) && models.length <= modelsMax;
  if (isList && models.every((each) => typeof each === "string")) return models;
  throw invalid("models", `"models" must be a list of at most ${modelsMax} model names`);
}
