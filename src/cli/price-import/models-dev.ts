/** Price lists of models.dev: its `api.json`, which the operator downloaded. */
import { type JsonObject, listOf, objectOf } from "./exact-json.ts";
import {
  PriceRefusal,
  type PriceSource,
  type SourceBand,
  type SourceEntry,
  checkLimits,
  tierLimit,
} from "./source.ts";

/** The members of `cost` that are no prices. */
const tierMembers: ReadonlySet<string> = new Set(["tiers", "tier", "context_over_200k"]);

/** An `api.json`. Models are found by their exact name: the list has no matching rules. */
export function modelsDevFile(title: string, providers: JsonObject): PriceSource {
  const find = (provider: string, model: string): SourceEntry | undefined => {
    const models = objectOf(memberOf(objectOf(memberOf(providers, provider)), "models"));
    const found = objectOf(memberOf(models, model));
    if (found === undefined) return undefined;
    const cost = objectOf(found["cost"]);
    if (cost === undefined) {
      const reason = `the list has ${provider}/${model}, but no price of it`;
      throw new PriceRefusal("missing", reason, "write the cost by hand");
    }
    const prices = [{ fromMs: -Infinity, bands: bandsOf(cost) }];
    return { name: `${provider}/${model}`, match: "same name", prices };
  };
  return { format: "models.dev", title, find };
}

/** A member by a name that comes from outside: never one that every object inherits. */
function memberOf(object: JsonObject | undefined, name: string): unknown {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

function bandsOf(cost: JsonObject): readonly SourceBand[] {
  const base = { above: 0, fields: fieldsOf(cost) };
  const tiers = tierObjects(cost).map(tierBand);
  for (const { above, fields } of tiers) {
    // What the list leaves out of a tier may be dearer there, too.
    const left = [...base.fields.keys()].filter((field) => !fields.has(field));
    if (left.length > 0) {
      const reason = `the tier above ${above} tokens has no price for ${left.join(", ")}`;
      throw new PriceRefusal("conflicting", reason, "write the cost by hand");
    }
  }
  checkLimits(tiers);
  return [base, ...tiers.toSorted((a, b) => a.above - b.above)];
}

/** `tiers` says the exact limits. Older lists have only `context_over_200k`, which beside `tiers` repeats them. */
function tierObjects(cost: JsonObject): readonly JsonObject[] {
  if (cost["tiers"] !== undefined) return listOf(cost["tiers"]).map((each) => objectOf(each) ?? {});
  const old = objectOf(cost["context_over_200k"]);
  return old === undefined ? [] : [{ ...old, tier: { type: "context", size: "200000" } }];
}

function tierBand(tier: JsonObject): SourceBand {
  const { type = "context", size } = objectOf(tier["tier"]) ?? {};
  if (type !== "context") {
    const reason = `a tier depends on ${String(type)}, which a price cannot say`;
    throw new PriceRefusal("conflicting", reason, "write the cost by hand");
  }
  return { above: tierLimit(size), fields: fieldsOf(tier) };
}

function fieldsOf(cost: JsonObject): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(cost).filter(([field]) => !tierMembers.has(field)));
}
