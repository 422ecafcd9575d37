/** Anything that serves `POST {base_url}/chat/completions`, pictures or speech as OpenAI does: vLLM, Ollama … */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { isRecord, UnreadableReplyError } from "../../wire/json/value.ts";
import { bearerHeader, createHttpVendor, rerankDialects } from "../http-vendor.ts";
import { openaiFault } from "../openai/faults.ts";
import { openaiMedia } from "../openai/media.ts";
import { createOpenaiTasks } from "../openai/tasks.ts";
import type { OperationForm } from "../operation-form.ts";
import type { Vendor, VendorKind } from "../vendor.ts";

export const openaiCompatible: VendorKind = {
  dialects: [Dialect.CHAT_COMPLETIONS],
  limitParameter: "max_tokens",
  // Most refuse the role, and those that know it take `system` for the same.
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

// Rerank of Text Embeddings Inference: `{query, texts}` in, a list of scores out.

/** The form of `/rerank`. It ranks all texts; the best are picked here. */
const textsForm: OperationForm = {
  request({ query, documents }) {
    return { query, texts: textsOf(documents), truncate: true };
  },
  reply(reply, { model, documents, top_n: topN, return_documents: returns }) {
    if (!Array.isArray(reply) || !reply.every(isRecord)) {
      throw new UnreadableReplyError("a rerank reply without a list of scores");
    }
    const texts = textsOf(documents);
    const ranked = reply.toSorted((a, b) => Number(b["score"]) - Number(a["score"]));
    const results = ranked
      .slice(0, typeof topN === "number" ? topN : undefined)
      .map(({ index, score }) => ({
        index,
        relevance_score: score,
        ...(returns === true && { document: { text: texts[Number(index)] } }),
      }));
    return { model, results };
  },
};

/** The texts of a request: documents are texts, or objects with one. */
function textsOf(documents: unknown): readonly unknown[] {
  return (documents as readonly unknown[]).map((document) =>
    isRecord(document) ? (document["text"] ?? JSON.stringify(document)) : document,
  );
}
