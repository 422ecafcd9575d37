/** The table of price units. */
import { expect, test } from "vitest";
import { PriceUnit as UnitWord } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { PriceSchema, PriceTierSchema } from "../../../gen/uas/type/v1/price_pb.ts";
import { UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import { priceUnits, rareUnits, tokenUnits } from "../../../src/config/price-units.ts";

const fieldsOf = (schema: typeof PriceSchema | typeof PriceTierSchema, ...others: string[]) =>
  schema.fields.map(({ localName }) => localName).filter((name) => !others.includes(name));

test("every unit of a price is a field of the contract, a unit of receipts, and one row (R-MON-13)", () => {
  const keys = priceUnits.map(({ key }) => key);
  expect(keys.toSorted(), "fields of Price in price.proto").toEqual(
    fieldsOf(PriceSchema, "tiers", "images", "serviceTiers", "serviceTier").toSorted(),
  );
  expect(tokenUnits.map(({ key }) => key).toSorted(), "fields of PriceTier in price.proto").toEqual(
    fieldsOf(PriceTierSchema, "above").toSorted(),
  );
  const words = Object.values(UnitWord).filter((word) => typeof word === "number" && word !== 0);
  expect(
    priceUnits.map(({ word }) => word).toSorted((a, b) => a - b),
    "values of PriceUnit in receipt.proto",
  ).toEqual(words);
});

test("what few calls are charged for is an optional field of the contract's usage", () => {
  // Rejected predictions are charged as output, which they are part of; the others are no figures.
  const others = ["rejectedPredictionTokens", "unknownMembers", "serviceTier"];
  const optional = UsageSchema.fields.filter(
    ({ proto, localName }) => proto.proto3Optional && !others.includes(localName),
  );
  expect(rareUnits.map(({ usage }) => usage).toSorted(), "fields of Usage in usage.proto").toEqual(
    optional.map(({ localName }) => localName).toSorted(),
  );
});
