/** Google's Gemini API: generateContent, for text and pictures; Veo's films. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { geminiFault, geminiRetryAfter } from "./gemini-fault.ts";
import { createGeminiTasks } from "./gemini-tasks.ts";
import { createHttpVendor, endsWith, type Target } from "./http-vendor.ts";
import type { Vendor, VendorCall, VendorKind } from "./vendor.ts";

export const gemini: VendorKind = {
  dialects: [Dialect.GEMINI],
  modelTypes: [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO],
  needsBaseUrl: true,
  needsApiKey: true,
  onDisconnect: "drain",
  create,
};

function create(config: VendorConfig): Vendor {
  const { apiKey } = config;
  const version = endsWith(config, "/v1beta") || endsWith(config, "/v1") ? "" : "/v1beta";
  return createHttpVendor(config, {
    dialects: gemini.dialects,
    credential: apiKey === undefined ? {} : { "x-goog-api-key": apiKey },
    target: (call) => target(version, call),
    faultOf: geminiFault,
    retryAfterOf: geminiRetryAfter,
    tasks: createGeminiTasks(config),
  });
}

/** The caller's query is of another style, and none of it means anything here. */
function target(version: string, { model, stream }: VendorCall): Target {
  // `tunedModels/x` and the like name their collection themselves.
  const name = model.includes("/") ? model : `models/${model}`;
  const path = `${version}/${name.split("/").map(encodeURIComponent).join("/")}`;
  return stream
    ? { path: `${path}:streamGenerateContent`, query: "alt=sse" }
    : { path: `${path}:generateContent`, query: "" };
}
