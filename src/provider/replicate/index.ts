/**
 * Replicate: predictions of images, videos and audio, and of texts in its own form. It speaks no
 * style of text generation.
 */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { bearerHeader } from "../http-vendor.ts";
import { createNativeTransport, nativeBaseUrl } from "../native-http.ts";
import { replicateNative } from "./native.ts";
import { createReplicateTasks, replicateFault, replicateRetryAfter } from "./tasks.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const replicate: VendorKind = {
  dialects: [],
  modelTypes: [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO],
  needsBaseUrl: true,
  needsApiKey: true,
  native: replicateNative,
  probe: {
    request: (config) => ({
      url: `${nativeBaseUrl(config, "/v1")}/v1/account`,
      headers: bearerHeader(config.apiKey),
    }),
  },
  create,
};

function create(config: VendorConfig): Vendor {
  const tasks = createReplicateTasks(config);
  const url = nativeBaseUrl(config, "/v1");
  const native = createNativeTransport(config, {
    credential: bearerHeader(config.apiKey),
    bases: [
      { name: "api", url, below: "" },
      { name: "stream", url: url.replace(/^https:\/\/api\./, "https://stream."), below: "" },
    ],
  });
  return {
    name: config.name,
    dialects: new Set(),
    exchange: () => Promise.reject(new TypeError("this vendor generates no text by itself")),
    tasks,
    native,
    faultOf: replicateFault,
    retryAfterOf: replicateRetryAfter,
    close: async () => {
      await Promise.all([tasks.close(), native.close()]);
    },
  };
}
