/**
 * Alibaba's DashScope (Model Studio): Qwen text in its own and in OpenAI's style, images and
 * videos.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { isRecord, UnreadableReplyError } from "../../wire/json/value.ts";
import { bearerHeader, createHttpVendor, rerankDialects } from "../http-vendor.ts";
import { createNativeTransport, nativeBaseUrl } from "../native-http.ts";
import type { OperationForm } from "../operation-form.ts";
import type { Vendor, VendorKind } from "../vendor.ts";
import { dashscopeFault } from "./faults.ts";
import { dashscopeNative } from "./native.ts";
import { dashscopeRerank } from "./rerank.ts";
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
  probe: {
    request: (config) => ({
      url: `${nativeBaseUrl(config, "/api/v1", compatible)}/api/v1/tasks/?page_no=1&page_size=1`,
      headers: bearerHeader(config.apiKey),
    }),
  },
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
