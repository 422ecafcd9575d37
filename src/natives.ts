/** Puts the native room together: which vendor is served under which prefix, and how its jobs are followed. */
import type { Logger } from "pino";
import { NativeService } from "../gen/uas/native/v1/native_service_pb.ts";
import type { Ledger } from "./billing/ledger.ts";
import type { PriceBook } from "./billing/price-book.ts";
import type { Config, Settings } from "./config/config.ts";
import type { Database } from "./db/database.ts";
import type { NativePrefix } from "./facade/options.ts";
import type { Catalogue } from "./inference/catalogue.ts";
import type { InferenceHandlers } from "./inference/handlers.ts";
import type { RunningCalls } from "./inference/running-calls.ts";
import type { Metrics } from "./metrics.ts";
import type { NativeVendor } from "./native/context.ts";
import { createNativeExpiry, type NativeExpiry } from "./native/expiry.ts";
import { createFollowing, type FollowingOptions } from "./native/following.ts";
import { headerList } from "./native/headers.ts";
import { createLinks } from "./native/links.ts";
import { createFindNativeModel } from "./native/models.ts";
import {
  createNativeHandlers,
  createNativeService,
  type NativeHandlers,
} from "./native/service.ts";
import { createTell } from "./native/tell.ts";
import { type Service, serve } from "./rpc/service.ts";
import type { MoveNeeds } from "./task/move.ts";
import { createOutsideTasks } from "./task/outside.ts";
import type { WorkerVendor } from "./task/worker-options.ts";
import { createTaskPricing } from "./tasks.ts";
import { vendorKinds } from "./vendor/index.ts";
import type { Vendor } from "./vendor/vendor.ts";

/** What the room needs of the ground. */
export interface NativeRoomOptions {
  readonly database: Database;
  readonly config: Config;
  readonly settings: Pick<Settings, "publicUrl">;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly prices: PriceBook;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Called when there is something for workers to look at. */
  readonly onNews: () => void;
  readonly onLowBalance: NonNullable<MoveNeeds["onLowBalance"]>;
  /** For tests. Default: as {@link FollowingOptions} has it. */
  readonly taskTimings?: Pick<FollowingOptions, "refreshMs">;
}

/** What its service needs of the other rooms. */
export interface NativeServing {
  readonly catalogue: Catalogue;
  readonly handlers: InferenceHandlers;
  readonly calls: RunningCalls;
  readonly ledger: Pick<Ledger, "record">;
}

/** The room of a server. */
export interface NativeRoom {
  /** What the facade serves. */
  readonly prefixes: readonly NativePrefix[];
  /** How workers follow jobs, by vendor name. */
  readonly natives: ReadonlyMap<string, WorkerVendor>;
  /** Tells of tasks, jobs among them. */
  readonly tell: NonNullable<MoveNeeds["tell"]>;
  readonly jobs: NativeExpiry;
  serve(parts: NativeServing): { readonly handlers: NativeHandlers; readonly service: Service };
  /** Where the gateway listens: what vendors' addresses become where no other public address is set. */
  servedAt<Urls extends { readonly publicUrl: string }>(urls: Urls): Urls;
}

/** Makes it. */
export function createNativeRoom(options: NativeRoomOptions): NativeRoom {
  const { database, config, settings, prices, metrics, log, onNews, onLowBalance } = options;
  const { pool } = database;
  const vendors = served(options);
  let listening = "";
  const publicUrl = (): string => settings.publicUrl ?? listening;
  const links = createLinks(options.masterKey);
  const following = createFollowing({ pool, onNews, refreshMs: options.taskTimings?.refreshMs });
  const byName = new Map([...vendors.values()].map((at) => [at.config.name, at]));
  const tell = createTell({ vendors: byName, links, publicUrl });
  const needs = { pool, tell, onLowBalance, onNews };
  const outside = createOutsideTasks({ ...needs, pricing: createTaskPricing(prices) });
  const { allowHosts } = config.webhooks;
  const findModel = createFindNativeModel(config.models.values());
  const common = { vendors, findModel, pool, outside, following, links, allowHosts, publicUrl };
  return {
    prefixes: [...vendors.values()].map(({ prefix, api }) => ({
      prefix,
      ...api,
      isRecorded: (method, path) =>
        api.routes.some(
          (route) =>
            (route.kind === "call" || route.kind === "submit") &&
            route.method === method &&
            route.path.test(path),
        ),
    })),
    natives: new Map(
      [...byName].map(([name, at]) => [
        name,
        {
          tasks: following.tasksOf(at),
          maxInFlight: undefined,
          baseUrl: at.config.baseUrl,
          isFileOptional: true,
        },
      ]),
    ),
    tell,
    jobs: createNativeExpiry(pool, (message, fields) => log.warn(fields, message)),
    serve(parts) {
      const handlers = createNativeHandlers({ ...parts, ...common, metrics, log });
      return { handlers, service: serve(NativeService, createNativeService(handlers)) };
    },
    servedAt(urls) {
      listening = urls.publicUrl.replace(/\/$/, "");
      return urls;
    },
  };
}

/** Those that the configuration gives a prefix, and whose kind has an interface of its own. */
function served({
  config,
  vendors,
}: Pick<NativeRoomOptions, "config" | "vendors">): ReadonlyMap<string, NativeVendor> {
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
