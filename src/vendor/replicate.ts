/** Replicate: predictions of pictures, films and sound. It speaks no style of text generation. */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { createReplicateTasks } from "./replicate-tasks.ts";
import type { Vendor, VendorKind } from "./vendor.ts";

export const replicate: VendorKind = {
  dialects: [],
  modelTypes: [ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO],
  needsBaseUrl: true,
  needsApiKey: true,
  create,
};

function create(config: VendorConfig): Vendor {
  const tasks = createReplicateTasks(config);
  return {
    name: config.name,
    dialects: new Set(),
    exchange: () => Promise.reject(new TypeError("this vendor generates no text by itself")),
    tasks,
    close: () => tasks.close(),
  };
}
