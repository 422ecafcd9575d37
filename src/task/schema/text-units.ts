/** What a TEXT task can be charged for at most. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ModelConfig } from "../../config/config.ts";
import { measureRequest } from "../../inference/tokens/request-size.ts";
import { mediaTokens } from "../../inference/tokens/media-tokens.ts";
import type { TaskUnits } from "../../vendor/task.ts";

/** The bound of its parameters, and as many tokens of output as it may make. */
export function textUnits(params: JsonObject, { maxOutputTokens }: ModelConfig): TaskUnits {
  const { imageUrls, maxTokens, ...rest } = params;
  const named = Array.isArray(imageUrls) ? imageUrls.length : 0;
  const picture = mediaTokens({ kind: "picture", bytes: undefined }).bound;
  const { bound } = measureRequest(Buffer.from(JSON.stringify(rest)));
  return {
    inputTokens: bound + named * picture,
    outputTokens: typeof maxTokens === "number" ? maxTokens : maxOutputTokens,
  };
}
