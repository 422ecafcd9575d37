/** fal: pictures, films and sound, by a queue and by direct calls. It speaks no style of text generation. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { falFault } from "./faults.ts";
import { falNative } from "./native.ts";
import { createFalTasks } from "./tasks.ts";
import { createNativeTransport, nativeBaseUrl } from "../native-http.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const fal: VendorKind = {
  dialects: [],
  modelTypes: [ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO],
  needsBaseUrl: true,
  needsApiKey: true,
  // What it has begun it goes on with, and bills.
  onDisconnect: "drain",
  native: falNative,
  create,
};

function create(config: VendorConfig): Vendor {
  const { apiKey } = config;
  const credential: Readonly<Record<string, string>> =
    apiKey === undefined ? {} : { authorization: `Key ${apiKey}` };
  const queue = nativeBaseUrl(config);
  const tasks = createFalTasks(config, credential);
  const native = createNativeTransport(config, {
    credential,
    bases: [
      { name: "queue", url: queue, below: "/queue" },
      { name: "run", url: config.runBaseUrl ?? runUrl(queue), below: "/run" },
    ],
  });
  return {
    name: config.name,
    dialects: new Set(),
    exchange: () => Promise.reject(new TypeError("this vendor generates no text by itself")),
    faultOf: falFault,
    tasks,
    native,
    close: async () => {
      await Promise.all([tasks.close(), native.close()]);
    },
  };
}

/** `https://queue.fal.run` has its direct calls at `https://fal.run`. */
function runUrl(queueUrl: string): string {
  const url = new URL(queueUrl);
  url.hostname = url.hostname.replace(/^queue\./, "");
  return url.href.replace(/\/+$/, "");
}
