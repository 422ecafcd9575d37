/** Cohere: rerank in both versions of its API. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { baseUrlEndsWith, bearerHeader, createHttpVendor, rerankDialects } from "../http-vendor.ts";
import { listedNames } from "../probe.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const cohere: VendorKind = {
  dialects: [],
  modelTypes: [ModelType.RERANK],
  needsBaseUrl: true,
  needsApiKey: true,
  probe: {
    request: (config) => ({
      url: `${unversioned(config)}/v1/models?endpoint=rerank&page_size=1000`,
      headers: bearerHeader(config.apiKey),
    }),
    readModels: (reply) => listedNames(reply, "models", "name"),
  },
  create,
};

function create(config: VendorConfig): Vendor {
  return createHttpVendor(
    { ...config, baseUrl: unversioned(config) },
    {
      dialects: cohere.dialects,
      credential: bearerHeader(config.apiKey),
      operations: {
        rerank: {
          dialects: rerankDialects,
          path: ({ dialect }) => (dialect === Dialect.RERANK_V2 ? "/v2/rerank" : "/v1/rerank"),
        },
      },
    },
  );
}

/** The address without a version: the call decides it, whatever the address ends with. */
function unversioned(config: VendorConfig): string {
  const version = ["/v1", "/v2"].find((each) => baseUrlEndsWith(config, each)) ?? "";
  return config.baseUrl.slice(0, config.baseUrl.length - version.length);
}
