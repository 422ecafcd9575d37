/** Whether a model can be asked in a certain way. Pure. */
import type { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import { type ModelConfig } from "../config/config.ts";
import { modelTypeWord } from "../config/kinds.ts";
import { invalid } from "../dialect/body-members.ts";

/** @throws GatewayError INVALID_REQUEST where its type cannot be asked so */
export function checkModel({ key, type }: ModelConfig, types: readonly ModelType[]): void {
  if (types.includes(type)) return;
  const can = types.map(modelTypeWord).join(" and ");
  const text = `The model \`${key}\` is of type ${modelTypeWord(type)}; ${can} models are asked here`;
  throw invalid(text, "model");
}
