/** Models that are priced by what they make beside text. */
import type { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { PriceConfig } from "../../../src/config/config.ts";
import type { TestModel } from "../../support/gateway.ts";

/** A price of nothing. */
const nothing: PriceConfig = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
  image: undefined,
  second: undefined,
  request: undefined,
};

/** A model of one vendor. @param price of one unit, in nano-USD */
export function unitModel(
  type: ModelType,
  [vendor, model]: readonly [vendor: string, model: string],
  price: Partial<Pick<PriceConfig, "image" | "second" | "character">>,
): TestModel {
  return { type, routes: [{ vendor, model }], maxOutputTokens: 0, price: { ...nothing, ...price } };
}
