/** OpenAI itself: chat completions and responses; pictures and speech. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { bearerHeader, createHttpVendor, pathOf } from "../http-vendor.ts";
import { openaiFault } from "./faults.ts";
import { openaiMedia } from "./media.ts";
import { openaiProbe } from "../openai-probe.ts";
import { createOpenaiTasks } from "./tasks.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const openai: VendorKind = {
  dialects: [Dialect.RESPONSES, Dialect.CHAT_COMPLETIONS],
  limitParameter: "max_completion_tokens",
  modelTypes: [
    ModelType.TEXT,
    ModelType.IMAGE,
    ModelType.AUDIO,
    ModelType.EMBEDDING,
    ModelType.MODERATION,
  ],
  needsBaseUrl: true,
  needsApiKey: true,
  probe: openaiProbe,
  create,
};

const paths: ReadonlyMap<Dialect, string> = new Map([
  [Dialect.CHAT_COMPLETIONS, "/chat/completions"],
  [Dialect.RESPONSES, "/responses"],
]);

function create(config: VendorConfig): Vendor {
  return createHttpVendor(config, {
    dialects: openai.dialects,
    credential: bearerHeader(config.apiKey),
    target: ({ dialect, query }) => ({ path: pathOf(paths, dialect), query }),
    countTokens: new Map([[Dialect.RESPONSES, "/responses/input_tokens"]]),
    compact: new Map([[Dialect.RESPONSES, "/responses/compact"]]),
    operations: {
      embed: "/embeddings",
      moderate: "/moderations",
      complete: "/completions",
    },
    media: openaiMedia,
    keepsResponses: true,
    faultOf: openaiFault,
    tasks: createOpenaiTasks(config, true),
  });
}
