/**
 * fal: images, videos, audio and texts in its own form, by a queue and by direct calls. It speaks
 * no style of text generation.
 */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { falFault } from "./faults.ts";
import { falNative } from "./native.ts";
import { createFalTasks } from "./tasks.ts";
import { createNativeTransport, nativeBaseUrl } from "../native-http.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const fal: VendorKind = {
  dialects: [],
  modelTypes: [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO],
  needsBaseUrl: true,
  needsApiKey: true,
  // fal completes and bills a job once it has begun.
  onDisconnect: "drain",
  native: falNative,
  probe: {
    // The status of a job that does not exist.
    request: (config) => ({
      url: `${nativeBaseUrl(config)}/fal-ai/flux/requests/00000000-0000-0000-0000-000000000000/status`,
      headers: keyHeader(config.apiKey),
      isWrong: true,
    }),
  },
  create,
};

function keyHeader(apiKey: string | undefined): Readonly<Record<string, string>> {
  return apiKey === undefined ? {} : { authorization: `Key ${apiKey}` };
}

function create(config: VendorConfig): Vendor {
  const credential = keyHeader(config.apiKey);
  const queue = nativeBaseUrl(config);
  const tasks = createFalTasks(config, credential);
  const native = createNativeTransport(config, {
    credential,
    bases: [
      { name: "queue", url: queue, below: "/queue" },
      { name: "run", url: config.runBaseUrl ?? runUrl(queue), below: "/run" },
      { name: "rest", url: restUrl(queue, config.runBaseUrl), below: "/rest" },
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

/** fal's file storage has a separate address; elsewhere it shares the address of direct calls. */
function restUrl(queueUrl: string, run: string | undefined): string {
  const isFal = new URL(queueUrl).hostname === "queue.fal.run";
  return isFal ? "https://rest.fal.ai" : (run ?? runUrl(queueUrl));
}

/** `https://queue.fal.run` has its direct calls at `https://fal.run`. */
function runUrl(queueUrl: string): string {
  const url = new URL(queueUrl);
  url.hostname = url.hostname.replace(/^queue\./, "");
  return url.href.replace(/\/+$/, "");
}
