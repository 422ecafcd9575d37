/**
 * A gateway that serves Replicate's own interface, the vendor behind it, and a receiver of
 * webhooks.
 */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import {
  type Gateway,
  type GatewayOptions,
  priceDefault,
  startGateway,
} from "../../support/gateway.ts";
import { type NativeVendorServer, often, startNativeVendor } from "./native-vendor.ts";
import { playReplicate, type Replicate } from "./replicate-vendor.ts";

/** All of them. */
export interface ReplicateGateway extends Gateway {
  readonly vendor: NativeVendorServer;
  readonly replicate: Replicate;
}

const none = { ...priceDefault, input: undefined, output: undefined };

/** A version as Replicate has them. */
export const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa";

/** Starts them. */
export async function startReplicateGateway(
  options: Pick<GatewayOptions, "webhooks" | "settings" | "taskTimings" | "limits"> = {},
): Promise<ReplicateGateway> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
  const route = (model: string) => [{ vendor: "replicate", model }];
  const gateway = await startGateway({
    taskTimings: often,
    ...options,
    vendors: {
      replicate: {
        kind: "replicate",
        baseUrl: vendor.origin,
        apiKey: vendor.secret,
        nativePrefix: "/replicate",
      },
    },
    models: {
      flux: {
        type: ModelType.IMAGE,
        routes: route("labs/flux"),
        maxOutputTokens: 0,
        price: { ...none, image: 3_000_000n },
      },
      pinned: {
        type: ModelType.IMAGE,
        routes: route(`labs/pinned:${version}`),
        maxOutputTokens: 0,
        price: { ...none, image: 5_000_000n },
      },
      writer: {
        type: ModelType.TEXT,
        routes: route("labs/llama"),
        maxOutputTokens: 1_000,
        price: priceDefault,
      },
      film: {
        type: ModelType.VIDEO,
        routes: route("labs/film"),
        maxOutputTokens: 0,
        price: { ...none, second: 50_000_000n },
      },
    },
  });
  return {
    ...gateway,
    vendor,
    replicate: playReplicate(vendor),
    async close() {
      await gateway.close();
      await vendor.close();
    },
  };
}
