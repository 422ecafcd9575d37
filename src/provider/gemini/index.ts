/** Google's Gemini API: generateContent, for text and pictures; Veo's films. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { embeddingsReply, readEmbeddings } from "../../dialect/operations/embeddings.ts";
import {
  isRecord,
  protoCountAt,
  recordAt,
  recordsAt,
  UnreadableReplyError,
} from "../../wire/json/value.ts";
import { baseUrlEndsWith, createHttpVendor, type Target } from "../http-vendor.ts";
import { createNativeTransport, nativeBaseUrl } from "../native-http.ts";
import type { OperationForm } from "../operation-form.ts";
import type { Vendor, VendorCall, VendorKind } from "../vendor.ts";
import { geminiFault, geminiRetryAfter } from "./faults.ts";
import { geminiNative } from "./native.ts";
import { createGeminiTasks } from "./tasks.ts";

export const gemini: VendorKind = {
  dialects: [Dialect.GEMINI],
  modelTypes: [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.EMBEDDING],
  needsBaseUrl: true,
  needsApiKey: true,
  onDisconnect: "drain",
  native: geminiNative,
  create,
};

function create(config: VendorConfig): Vendor {
  const { apiKey } = config;
  const credential = apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
  const version =
    baseUrlEndsWith(config, "/v1beta") || baseUrlEndsWith(config, "/v1") ? "" : "/v1beta";
  return createHttpVendor(config, {
    dialects: gemini.dialects,
    credential,
    target: (call) => target(version, call),
    faultOf: geminiFault,
    retryAfterOf: geminiRetryAfter,
    operations: {
      embed: {
        path: ({ model }) => `${modelPath(version, model)}:batchEmbedContents`,
        form: geminiEmbeddings,
      },
    },
    tasks: createGeminiTasks(config),
    native: createNativeTransport(config, {
      credential,
      bases: [{ name: "api", url: nativeBaseUrl(config, "/v1beta", "/v1"), below: "" }],
    }),
  });
}

/** The caller's query is of another style, and none of it means anything here. */
function target(version: string, { model, stream }: VendorCall): Target {
  const path = modelPath(version, model);
  return stream
    ? { path: `${path}:streamGenerateContent`, query: "alt=sse" }
    : { path: `${path}:generateContent`, query: "" };
}

function modelPath(version: string, model: string): string {
  return `${version}/${modelName(model).split("/").map(encodeURIComponent).join("/")}`;
}

// Embeddings of Gemini's API: a request with many texts, each in the form of a message.

/** The resource name of a model. `tunedModels/x` and the like name their collection themselves. */
function modelName(model: string): string {
  return model.includes("/") ? model : `models/${model}`;
}

/** The form of `batchEmbedContents`. */
const geminiEmbeddings: OperationForm = {
  request(body, call) {
    const { texts, dimensions } = readEmbeddings(body);
    const model = modelName(call.model);
    return {
      requests: texts.map((text) => ({
        model,
        content: { parts: [{ text }] },
        ...(dimensions !== undefined && { outputDimensionality: dimensions }),
      })),
    };
  },
  reply(reply, asked) {
    if (!isRecord(reply)) throw new UnreadableReplyError("embeddings that are no object");
    const vectors = recordsAt(reply, "embeddings").map(({ values }) => numbers(values));
    const { texts, isBase64 } = readEmbeddings(asked);
    if (vectors.length !== texts.length) {
      throw new UnreadableReplyError(`${vectors.length} embeddings for ${texts.length} texts`);
    }
    const usage = recordAt(reply, "usageMetadata");
    const inputTokens = usage && protoCountAt(usage, "promptTokenCount");
    return embeddingsReply(asked["model"], vectors, { isBase64, inputTokens });
  },
};

function numbers(values: unknown): readonly number[] {
  const areNumbers = Array.isArray(values) && values.every((each) => typeof each === "number");
  if (areNumbers) return values;
  throw new UnreadableReplyError("an embedding without values");
}
