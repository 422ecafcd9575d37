/** Jina: rerank. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { baseUrlEndsWith, bearerHeader, createHttpVendor, rerankDialects } from "../http-vendor.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const jina: VendorKind = {
  dialects: [],
  modelTypes: [ModelType.RERANK],
  needsBaseUrl: true,
  needsApiKey: true,
  create,
};

function create(config: VendorConfig): Vendor {
  const path = baseUrlEndsWith(config, "/v1") ? "/rerank" : "/v1/rerank";
  return createHttpVendor(config, {
    dialects: jina.dialects,
    credential: bearerHeader(config.apiKey),
    operations: { rerank: { dialects: rerankDialects, path: () => path } },
  });
}
