/** Cohere: rerank in both versions of its API. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { baseUrlEndsWith, bearerHeader, createHttpVendor, rerankDialects } from "../http-vendor.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const cohere: VendorKind = {
  dialects: [],
  modelTypes: [ModelType.RERANK],
  needsBaseUrl: true,
  needsApiKey: true,
  create,
};

function create(config: VendorConfig): Vendor {
  // The call decides the version, whatever the address ends with.
  const versioned = ["/v1", "/v2"].find((version) => baseUrlEndsWith(config, version)) ?? "";
  const baseUrl = config.baseUrl.slice(0, config.baseUrl.length - versioned.length);
  return createHttpVendor(
    { ...config, baseUrl },
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
