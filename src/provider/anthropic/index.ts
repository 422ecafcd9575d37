/** Anthropic: messages. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { errorMember, textMember, createHttpVendor, baseUrlEndsWith } from "../http-vendor.ts";
import type { Vendor, VendorKind } from "../vendor.ts";
import { listedNames } from "../probe.ts";
import type { VendorFault } from "../task.ts";

export const anthropic: VendorKind = {
  dialects: [Dialect.MESSAGES],
  modelTypes: [ModelType.TEXT],
  needsBaseUrl: true,
  needsApiKey: true,
  probe: {
    request: (config) => ({
      url: `${config.baseUrl}${baseUrlEndsWith(config, "/v1") ? "" : "/v1"}/models?limit=1000`,
      headers: { ...keyHeader(config.apiKey), "anthropic-version": versionDefault },
    }),
    readModels: (reply) => listedNames(reply, "data", "id"),
  },
  create,
};

/** Default version. The later one refuses `temperature`, `top_p` and `top_k`. */
const versionDefault = "2023-06-01";

function create(config: VendorConfig): Vendor {
  // SDKs of this style expect a base URL without the version, SDKs of other styles with it. Both
  // are accepted.
  const path = baseUrlEndsWith(config, "/v1") ? "/messages" : "/v1/messages";
  return createHttpVendor(config, {
    dialects: anthropic.dialects,
    credential: keyHeader(config.apiKey),
    defaultHeaders: { "anthropic-version": versionDefault },
    target: ({ query }) => ({ path, query }),
    countTokens: new Map([[Dialect.MESSAGES, `${path}/count_tokens`]]),
    faultOf: anthropicFault,
  });
}

function keyHeader(apiKey: string | undefined): Readonly<Record<string, string>> {
  return apiKey === undefined ? {} : { "x-api-key": apiKey };
}

/**
 * Implements {@link Vendor.faultOf}. An empty account, a spending limit and a closed organization
 * arrive as `invalid_request_error` with status 400, like a faulty request; only the text
 * distinguishes them.
 */
export function anthropicFault(_status: number, body: Buffer): VendorFault | undefined {
  const error = errorMember(body);
  if (error === undefined) return undefined;
  const type = textMember(error, "type");
  if (type === "billing_error") return "money";
  if (type === "authentication_error") return "credential";
  if (type !== "invalid_request_error") return undefined;
  const message = textMember(error, "message");
  if (/^Your credit balance is too low\b/.test(message)) return "money";
  if (/^You have reached your specified (\w+ )?API usage limits\b/.test(message)) return "money";
  if (/^This organization has been disabled\b/.test(message)) return "credential";
  return undefined;
}
