/** The names of price units, by their word in the contract. */
import type { PriceUnit } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { priceUnits } from "../../../src/config/price-units.ts";

/** The names of all units in a language. */
export function unitNames(language: "en" | "zh"): Readonly<Partial<Record<PriceUnit, string>>> {
  return Object.fromEntries(priceUnits.map(({ word, label }) => [word, label[language]]));
}
