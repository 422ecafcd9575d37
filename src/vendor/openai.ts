/** OpenAI itself: chat completions and responses. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { errorMember, textMember } from "./error-json.ts";
import { bearer, createHttpVendor, pathOf } from "./http-vendor.ts";
import type { Vendor, VendorFault, VendorKind } from "./vendor.ts";

export const openai: VendorKind = {
  dialects: [Dialect.RESPONSES, Dialect.CHAT_COMPLETIONS],
  modelTypes: [ModelType.TEXT],
  needsBaseUrl: true,
  needsApiKey: true,
  create,
};

const paths: ReadonlyMap<Dialect, string> = new Map([
  [Dialect.CHAT_COMPLETIONS, "/chat/completions"],
  [Dialect.RESPONSES, "/responses"],
]);

function create(config: VendorConfig): Vendor {
  return createHttpVendor(config, {
    dialects: openai.dialects,
    credential: bearer(config.apiKey),
    target: ({ dialect, query }) => ({ path: pathOf(paths, dialect), query }),
    countTokens: new Map([[Dialect.RESPONSES, "/responses/input_tokens"]]),
    embed: "/embeddings",
    keepsResponses: true,
    faultOf: openaiFault,
  });
}

/** OpenAI's codes that are about the account, whatever the status they come with. */
const faults: ReadonlyMap<string, VendorFault> = new Map([
  ["insufficient_quota", "money"],
  ["billing_hard_limit_reached", "money"],
  ["billing_not_active", "money"],
  ["account_deactivated", "credential"],
  ["invalid_api_key", "credential"],
  // 403 where the key's project may not use the model, 404 where there is none, 400 at some copies.
  ["model_not_found", "model"],
]);

/** See {@link Vendor.faultOf}: by the error's `code`, and by its `type` where it has none. */
export function openaiFault(_status: number, body: Buffer): VendorFault | undefined {
  const error = errorMember(body);
  if (error === undefined) return undefined;
  return faults.get(textMember(error, "code")) ?? faults.get(textMember(error, "type"));
}
