/** Members of a body that are about routing: read, and taken out before a vendor sees it. */
import { asBuffer } from "../../core/bytes.ts";
import { invalid } from "../../core/validation.ts";
import { withoutMembers } from "../../dialect/body-members.ts";
import type { Outline } from "../../wire/json/outline.ts";
import {
  readPreferences,
  type RoutePreferences,
  type RoutingWishes,
} from "../../routing/preferences.ts";

/** The members that list fallback models: OpenRouter's name, and the one that `uas.yaml` has. */
const modelLists: readonly string[] = ["models", "fallback_models"];

const routingMembers: ReadonlySet<string> = new Set(["provider", ...modelLists]);

/** The most models that a request may name. */
const modelsMax = 10;

/** Whether a body has such members. Most bodies do not. */
export function hasRoutingMembers({ members }: Outline): boolean {
  return members.some(({ key }) => routingMembers.has(key));
}

/** Reads the members, and returns the body without them. @throws GatewayError INVALID_REQUEST */
export function takeRoutingMembers(
  body: Uint8Array,
  { members }: Outline,
): RoutingWishes & { readonly body: Buffer } {
  const bytes = asBuffer(body);
  let preferences: RoutePreferences | undefined;
  let models: readonly string[] | undefined;
  for (const { key, valueStart, valueEnd } of members) {
    const value = (): string => bytes.toString("utf8", valueStart, valueEnd);
    if (key === "provider") preferences = readPreferences(value(), "provider");
    else if (modelLists.includes(key)) {
      if (models !== undefined) throw invalid(key, "send `models` or `fallback_models`, not both");
      models = readModels(key, value());
    }
  }
  return { preferences, models, body: withoutMembers(bytes, members, routingMembers) };
}

function readModels(name: string, json: string): readonly string[] {
  const models: unknown = JSON.parse(json);
  const isList = Array.isArray(models) && models.length <= modelsMax;
  if (isList && models.every((each) => typeof each === "string")) return models;
  throw invalid(name, `"${name}" must be a list of at most ${modelsMax} model names`);
}
