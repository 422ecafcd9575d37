/** Puts the native room together: which vendor is served under which prefix. */
import type { Logger } from "pino";
import { NativeService } from "../gen/uas/native/v1/native_service_pb.ts";
import type { Config, Settings } from "./config/config.ts";
import type { NativePrefix } from "./facade/options.ts";
import type { Catalogue } from "./inference/catalogue.ts";
import type { Exchange } from "./inference/exchange.ts";
import type { RunningCalls } from "./inference/running-calls.ts";
import type { Metrics } from "./metrics.ts";
import type { NativeVendor } from "./native/context.ts";
import { headerList } from "./native/headers.ts";
import { createFindNativeModel } from "./native/models.ts";
import { createNativeService } from "./native/service.ts";
import { type Service, serve } from "./rpc/service.ts";
import { vendorKinds } from "./vendor/index.ts";
import type { Vendor } from "./vendor/vendor.ts";

/** What the room needs of the rest. */
export interface NativeRoomOptions {
  readonly settings: Pick<Settings, "publicUrl">;
  readonly config: Config;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly catalogue: Catalogue;
  readonly exchange: Exchange;
  readonly calls: RunningCalls;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** The room of a server. */
export interface NativeRoom {
  readonly service: Service;
  /** What the facade serves. */
  readonly prefixes: readonly NativePrefix[];
  /** Where the gateway listens: what vendors' addresses become where no other public address is set. */
  servedAt<Urls extends { readonly publicUrl: string }>(urls: Urls): Urls;
}

/** Makes it. */
export function createNativeRoom(options: NativeRoomOptions): NativeRoom {
  const { config, settings } = options;
  const { models } = config;
  const vendors = served(options);
  let listening = "";
  const service = createNativeService({
    ...options,
    models,
    vendors,
    findModel: createFindNativeModel(models.values()),
    publicUrl: () => settings.publicUrl ?? listening,
  });
  return {
    service: serve(NativeService, service),
    prefixes: [...vendors.values()].map(({ prefix, api }) => ({ prefix, ...api })),
    servedAt(urls) {
      listening = urls.publicUrl.replace(/\/$/, "");
      return urls;
    },
  };
}

/** Those that the configuration gives a prefix, and whose kind has an interface of its own. */
function served({ config, vendors }: NativeRoomOptions): ReadonlyMap<string, NativeVendor> {
  const found = new Map<string, NativeVendor>();
  for (const [name, vendor] of vendors) {
    const own = config.vendors.get(name);
    const api = vendorKinds[own?.kind ?? ""]?.native;
    const { native: transport } = vendor;
    if (!own?.nativePrefix || api === undefined || transport === undefined) continue;
    found.set(own.nativePrefix, {
      prefix: own.nativePrefix,
      vendor,
      config: own,
      api,
      transport,
      requestHeaders: headerList(api.requestHeaders),
      responseHeaders: headerList(api.responseHeaders),
    });
  }
  return found;
}
