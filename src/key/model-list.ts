/** The list of models that a key may use. */
import { ErrorCode, GatewayError } from "../errors.ts";

const modelsMax = 1_000;
const modelCharsMax = 200;

const unprintable = /\p{Cc}/u;

/**
 * Trims, checks and deduplicates a list of model keys. Whether such models exist is not asked: they come
 * and go with the configuration.
 *
 * @returns `null` where the list is empty: every model.
 * @throws GatewayError INVALID_REQUEST
 */
export function parseModelList(models: readonly string[]): string[] | null {
  if (models.length > modelsMax) {
    throw invalidModels(`models has ${models.length} entries: list at most ${modelsMax}`);
  }
  const trimmed = models.map((model) => model.trim());
  for (const model of trimmed) {
    if (model === "" || model.length > modelCharsMax) {
      throw invalidModels(`each of models must be 1 to ${modelCharsMax} characters long`);
    }
    if (unprintable.test(model) || !model.isWellFormed()) {
      throw invalidModels("models must not contain control characters");
    }
  }
  return trimmed.length === 0 ? null : [...new Set(trimmed)];
}

function invalidModels(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "models" });
}
