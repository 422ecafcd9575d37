/**
 * Anything that serves `POST {base_url}/chat/completions`, pictures or speech as OpenAI does: vLLM,
 * Ollama …
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { bearerHeader, createHttpVendor, rerankDialects } from "../http-vendor.ts";
import { openaiFault } from "../openai/faults.ts";
import { openaiMedia } from "../openai/media.ts";
import { openaiProbe } from "../openai-probe.ts";
import { createOpenaiTasks } from "../openai/tasks.ts";
import type { Vendor, VendorKind } from "../vendor.ts";
import { textsForm } from "./rerank.ts";

export const openaiCompatible: VendorKind = {
  dialects: [Dialect.CHAT_COMPLETIONS],
  limitParameter: "max_tokens",
  // Most of these vendors refuse the role; the others treat it like `system`.
  quirks: { developerRole: "refused" },
  modelTypes: [
    ModelType.TEXT,
    ModelType.IMAGE,
    ModelType.AUDIO,
    ModelType.EMBEDDING,
    ModelType.RERANK,
    ModelType.MODERATION,
  ],
  needsBaseUrl: true,
  needsApiKey: false,
  probe: openaiProbe,
  create,
};

function create(config: VendorConfig): Vendor {
  return createHttpVendor(config, {
    dialects: openaiCompatible.dialects,
    credential: bearerHeader(config.apiKey),
    target: ({ query }) => ({ path: "/chat/completions", query }),
    operations: {
      embed: "/embeddings",
      moderate: "/moderations",
      complete: "/completions",
      rerank: {
        dialects: rerankDialects,
        path: () => "/rerank",
        ...(config.rerankForm === "texts" && { form: textsForm }),
      },
    },
    media: openaiMedia,
    faultOf: openaiFault,
    tasks: createOpenaiTasks(config, false),
  });
}
