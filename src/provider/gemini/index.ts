/** Google's Gemini API: generateContent, for text and pictures; Veo's films. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { baseUrlEndsWith, createHttpVendor, type Target } from "../http-vendor.ts";
import { createNativeTransport, nativeBaseUrl } from "../native-http.ts";
import { listedNames } from "../probe.ts";
import type { Vendor, VendorCall, VendorKind } from "../vendor.ts";
import { geminiEmbeddings, modelName } from "./embeddings.ts";
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
  probe: {
    request: (config) => ({
      url: `${config.baseUrl}${versionFor(config)}/models?pageSize=1000`,
      headers: keyHeader(config.apiKey),
    }),
    readModels: (reply) =>
      listedNames(reply, "models", "name").map((name) => name.replace(/^models\//, "")),
  },
  create,
};

function create(config: VendorConfig): Vendor {
  const credential = keyHeader(config.apiKey);
  const version = versionFor(config);
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

function keyHeader(apiKey: string | undefined): Readonly<Record<string, string>> {
  return apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
}

/** The version that the address lacks; empty if it has one. */
function versionFor(config: VendorConfig): string {
  return baseUrlEndsWith(config, "/v1beta") || baseUrlEndsWith(config, "/v1") ? "" : "/v1beta";
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
