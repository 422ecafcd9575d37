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
  probe: {
    // A request without documents costs nothing.
    request: (config) => ({
      url: config.baseUrl + pathFor(config),
      headers: bearerHeader(config.apiKey),
      body: "{}",
      isWrong: true,
    }),
  },
  create,
};

function pathFor(config: VendorConfig): string {
  return baseUrlEndsWith(config, "/v1") ? "/rerank" : "/v1/rerank";
}

function create(config: VendorConfig): Vendor {
  const path = pathFor(config);
  return createHttpVendor(config, {
    dialects: jina.dialects,
    credential: bearerHeader(config.apiKey),
    operations: { rerank: { dialects: rerankDialects, path: () => path } },
  });
}
