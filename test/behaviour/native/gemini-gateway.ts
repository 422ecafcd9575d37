/** A gateway that serves Gemini's own interface, and the vendor behind it. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { type Gateway, priceDefault, startGateway, type TestModel } from "../../support/gateway.ts";
import { type NativeVendorServer, often, startNativeVendor } from "./native-vendor.ts";

/** Both of them. */
export interface NativeGateway extends Gateway {
  readonly vendor: NativeVendorServer;
}

const route = (model: string) => [{ vendor: "gemini", model }];

/** The models: some by the vendor's name, one by one of ours. */
export const geminiModels: Readonly<Record<string, TestModel>> = {
  "gemini-x": { routes: route("gemini-x") },
  "gemini-again": { routes: route("gemini-again"), retry: { attempts: 2, withinMs: 60_000 } },
  "gemini-tools": {
    routes: route("gemini-tools"),
    price: {
      ...priceDefault,
      audioInput: 1_000_000_000n,
      audioOutput: 10_000_000_000n,
      imageOutput: 30_000_000_000n,
      webSearch: 14_000_000n,
      codeExecution: 1_000_000n,
    },
  },
  "our/name": { routes: route("gemini-y") },
  "gemini-image": {
    type: ModelType.IMAGE,
    routes: route("gemini-image"),
    maxOutputTokens: 0,
    price: { ...priceDefault, output: undefined, image: 39_000_000n },
  },
  veo: {
    type: ModelType.VIDEO,
    routes: route("veo-x"),
    maxOutputTokens: 0,
    price: { ...priceDefault, input: undefined, output: undefined, second: 400_000_000n },
  },
  embedder: { routes: route("embed-x"), maxOutputTokens: 1 },
};

/** Starts them. */
export async function startGeminiGateway(): Promise<NativeGateway> {
  const vendor = await startNativeVendor({ header: "x-goog-api-key" });
  const gateway = await startGateway({
    taskTimings: often,
    vendors: {
      gemini: {
        kind: "gemini",
        baseUrl: vendor.origin,
        apiKey: vendor.secret,
        nativePrefix: "/gemini",
        fileBuckets: ["shared-bucket"],
      },
    },
    models: geminiModels,
  });
  return {
    ...gateway,
    vendor,
    async close() {
      await gateway.close();
      await vendor.close();
    },
  };
}
