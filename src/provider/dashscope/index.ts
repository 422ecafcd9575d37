/** Alibaba's DashScope (Model Studio): Qwen text in its own and in OpenAI's style, images and videos. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { invalid } from "../../core/validation.ts";
import { isRecord, recordAt, recordsAt, UnreadableReplyError } from "../../wire/json/value.ts";
import {
  bearerHeader,
  createHttpVendor,
  type OperationRoute,
  rerankDialects,
} from "../http-vendor.ts";
import { createNativeTransport, nativeBaseUrl } from "../native-http.ts";
import type { OperationForm } from "../operation-form.ts";
import type { Vendor, VendorKind } from "../vendor.ts";
import { dashscopeFault } from "./faults.ts";
import { dashscopeNative } from "./native.ts";
import { createDashscopeTasks } from "./tasks.ts";

/** Path of the OpenAI-compatible API. */
const compatible = "/compatible-mode/v1";

export const dashscope: VendorKind = {
  dialects: [Dialect.CHAT_COMPLETIONS],
  limitParameter: "max_tokens",
  quirks: { developerRole: "refused" },
  modelTypes: [
    ModelType.TEXT,
    ModelType.IMAGE,
    ModelType.VIDEO,
    ModelType.EMBEDDING,
    ModelType.RERANK,
  ],
  needsBaseUrl: true,
  needsApiKey: true,
  native: dashscopeNative,
  create,
};

function create(config: VendorConfig): Vendor {
  const credential = bearerHeader(config.apiKey);
  const baseUrl = nativeBaseUrl(config, "/api/v1", compatible);
  return createHttpVendor(
    { ...config, baseUrl },
    {
      dialects: dashscope.dialects,
      credential,
      target: ({ query }) => ({ path: `${compatible}/chat/completions`, query }),
      operations: {
        embed: { path: () => `${compatible}/embeddings`, form: dashscopeEmbeddings },
        rerank: { ...dashscopeRerank, dialects: rerankDialects },
      },
      faultOf: dashscopeFault,
      tasks: createDashscopeTasks({ ...config, baseUrl }),
      native: createNativeTransport(config, {
        credential,
        bases: [{ name: "api", url: baseUrl, below: "" }],
      }),
    },
  );
}

/** The form of its embeddings: OpenAI's, but for base64, which it does not have. */
const dashscopeEmbeddings: OperationForm = {
  applies: (body) => body["encoding_format"] === "base64",
  request: (body) => ({ ...body, encoding_format: "float" }),
  reply(reply) {
    if (isRecord(reply)) return reply;
    throw new UnreadableReplyError("embeddings that are no object");
  },
};

// Rerank of DashScope: `{input, parameters}` in, `{output: {results}, usage}` out. Models of the family `qwen3-rerank` are
// at another address, which takes and sends the caller's form.

/** How requests for rerank are sent. */
const dashscopeRerank: OperationRoute = {
  path: ({ model }) =>
    isCompatible(model)
      ? "/compatible-api/v1/reranks"
      : "/api/v1/services/rerank/text-rerank/text-rerank",
  form: {
    request({ model, query, documents, top_n: topN, return_documents: returns, instruct }) {
      const texts = (documents as readonly unknown[]).map(textOf);
      if (isCompatible(String(model))) {
        return {
          ...{ model, query, documents: texts },
          ...(topN != null && { top_n: topN }),
          ...(instruct != null && { instruct }),
        };
      }
      return {
        model,
        input: { query, documents: texts },
        parameters: {
          ...(topN != null && { top_n: topN }),
          ...(instruct != null && { instruct }),
          return_documents: returns === true,
        },
      };
    },
    reply(reply, { model }) {
      if (isRecord(reply) && Array.isArray(reply["results"])) return reply;
      const output = isRecord(reply) ? recordAt(reply, "output") : undefined;
      if (!isRecord(reply) || !Array.isArray(output?.["results"])) {
        throw new UnreadableReplyError("a rerank reply without results");
      }
      const results = recordsAt(output, "results").map(
        ({ index, relevance_score: score, document }) => ({
          index,
          relevance_score: score,
          ...(isRecord(document) && { document }),
        }),
      );
      const { request_id: id, usage } = reply;
      return { id, model, results, ...(isRecord(usage) && { usage }) };
    },
  },
};

function isCompatible(model: string): boolean {
  return model.startsWith("qwen3-rerank");
}

function textOf(document: unknown, index: number): unknown {
  if (!isRecord(document)) return document;
  if (typeof document["text"] === "string") return document["text"];
  const param = `documents[${index}]`;
  throw invalid(
    param,
    `"${param}" must be a text, or an object with a "text": this model reads nothing else`,
  );
}
