/** The models that customers can call, and who may call them. */
import { create } from "@bufbuild/protobuf";
import { type Model, ModelSchema } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Caller } from "../caller.ts";
import type { ModelConfig, PriceConfig } from "../config/config.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { formatUsd } from "../money.ts";

/** Looks models up. */
export interface Catalogue {
  /**
   * The model that the caller asks for.
   *
   * @throws GatewayError MODEL_NOT_FOUND where there is none, ACCESS_DENIED where the key may not use it
   */
  authorize(caller: Caller, key: string): ModelConfig;
  /** The models that the caller may use, by key. */
  list(caller: Caller): readonly ModelConfig[];
}

export function createCatalogue(models: ReadonlyMap<string, ModelConfig>): Catalogue {
  const sorted = [...models.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
  return {
    authorize(caller, key) {
      const model = models.get(key);
      if (model === undefined) {
        throw new GatewayError(
          ErrorCode.MODEL_NOT_FOUND,
          `The model \`${shorten(key)}\` does not exist: name one of those that GET /v1/models lists`,
          { param: "model" },
        );
      }
      if (!mayUse(caller, key)) {
        throw new GatewayError(
          ErrorCode.ACCESS_DENIED,
          `Model access denied: this API key may not use \`${key}\``,
          { param: "model" },
        );
      }
      return model;
    },
    list: (caller) => sorted.filter((model) => mayUse(caller, model.key)),
  };
}

function mayUse(caller: Caller, key: string): boolean {
  return caller.kind !== "key" || caller.models === undefined || caller.models.has(key);
}

function shorten(key: string): string {
  return key.length <= 100 ? key : `${key.slice(0, 100)}…`;
}

/** The model as the contract shows it. */
export function modelMessage(model: ModelConfig): Model {
  const { key, name, type, maxOutputTokens, price } = model;
  return create(ModelSchema, { modelKey: key, name, type, maxOutputTokens, price: prices(price) });
}

function prices(price: PriceConfig): Record<keyof PriceConfig, string> {
  const text = (nanos: bigint | undefined): string => (nanos === undefined ? "" : formatUsd(nanos));
  return {
    input: text(price.input),
    cachedInput: text(price.cachedInput),
    cacheWrite: text(price.cacheWrite),
    output: text(price.output),
    image: text(price.image),
    second: text(price.second),
    request: text(price.request),
  };
}
