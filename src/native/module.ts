/** Puts the native room together: which vendor is served under which prefix, and how its jobs are followed. */
import type { PoolClient } from "pg";
import type { Logger } from "pino";
import { NativeService } from "../../gen/uas/native/v1/native_service_pb.ts";
import type { Ledger } from "../billing/ledger/ledger.ts";
import type { PriceBook } from "../billing/prices/price-book.ts";
import type { Config, Settings } from "../config/config.ts";
import { nativePayloadBytesMax } from "../config/limits.ts";
import type { Metrics } from "../core/metrics.ts";
import type { NativePrefix } from "../core/native-prefix.ts";
import { serve, type Service } from "../core/service.ts";
import type { Database } from "../db/database.ts";
import type { Catalogue } from "../inference/catalogue.ts";
import type { InferenceHandlers } from "../inference/handlers.ts";
import type { RunningCalls } from "../inference/running-calls.ts";
import { createExternalTasks } from "../task/external.ts";
import { createTaskPricing } from "../task/module.ts";
import { notifyTask } from "../task/notify.ts";
import type { TaskRow } from "../task/task-row.ts";
import type { TransitionOptions } from "../task/transition.ts";
import type { WorkerVendor } from "../task/worker-options.ts";
import { vendorKinds } from "../vendor/index.ts";
import type { Vendor } from "../vendor/vendor.ts";
import { headerList, type NativeMount, type NativeContext } from "./context.ts";
import { createNativeJobs, type NativeJobs } from "./jobs.ts";
import { createJobTracker, type JobTrackerOptions } from "./job-tracker.ts";
import { createLinks } from "./links.ts";
import { createFindNativeModel } from "./models.ts";
import { customerBody } from "./send.ts";
import { createNativeHandlers, createNativeService, type NativeHandlers } from "./service.ts";
import { jobOfTask } from "./store.ts";

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
  readonly onLowBalance: NonNullable<TransitionOptions["onLowBalance"]>;
  /** For tests. Default: as {@link JobTrackerOptions} has it. */
  readonly taskTimings?: Pick<JobTrackerOptions, "refreshMs">;
}

/** What its service needs of the other rooms. */
interface NativeRoomParts {
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
  readonly notify: NonNullable<TransitionOptions["notify"]>;
  readonly jobs: NativeJobs;
  serve(parts: NativeRoomParts): { readonly handlers: NativeHandlers; readonly service: Service };
  /** Where the gateway listens: what vendors' addresses become where no other public address is set. */
  servedAt<Urls extends { readonly publicUrl: string }>(urls: Urls): Urls;
}

/** Creates the native room. */
export function createNativeRoom(options: NativeRoomOptions): NativeRoom {
  const { database, config, settings, prices, metrics, log, onNews, onLowBalance } = options;
  const { pool } = database;
  const vendors = mountsOf(options);
  let listening = "";
  const publicUrl = (): string => settings.publicUrl ?? listening;
  const links = createLinks(options.masterKey);
  const jobTracker = createJobTracker({ pool, onNews, refreshMs: options.taskTimings?.refreshMs });
  const byName = new Map([...vendors.values()].map((mount) => [mount.config.name, mount]));
  const notify = createNotify({ vendors: byName, links, publicUrl });
  const needs = { pool, notify, onLowBalance, onNews };
  const external = createExternalTasks({ ...needs, pricing: createTaskPricing(prices) });
  const { allowHosts } = config.webhooks;
  const findModel = createFindNativeModel(config.models.values());
  const common = { vendors, findModel, pool, external, jobTracker, links, allowHosts, publicUrl };
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
      [...byName].map(([name, mount]) => [
        name,
        {
          tasks: jobTracker.tasksOf(mount),
          maxInFlight: undefined,
          baseUrl: mount.config.baseUrl,
          isFileOptional: true,
        },
      ]),
    ),
    notify,
    jobs: createNativeJobs(pool, (message, fields) => log.warn(fields, message)),
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
function mountsOf({
  config,
  vendors,
}: Pick<NativeRoomOptions, "config" | "vendors">): ReadonlyMap<string, NativeMount> {
  const found = new Map<string, NativeMount>();
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

/** What telling needs. */
interface NotifyRoomOptions extends Pick<NativeContext, "publicUrl" | "links"> {
  /** By name. */
  readonly vendors: ReadonlyMap<string, NativeMount>;
}

/** Tells of tasks: of those in our own form as ever. */
function createNotify(options: NotifyRoomOptions) {
  return async (transaction: PoolClient, task: TaskRow): Promise<void> => {
    if (task.callback_url === null) return;
    if (task.path === null) return notifyTask(transaction, task);
    const job = await jobOfTask(transaction, task.id);
    if (job === undefined) return notifyTask(transaction, task);
    if (task.finish_time === null && !job.wants_progress) return;
    const mount = options.vendors.get(job.vendor);
    const { body, vendor, vendor_id: vendorId, status } = job;
    const payload =
      mount &&
      body &&
      customerBody({ mount, accountId: task.account_id }, body, options).toString("utf8");
    const isShort = payload && Buffer.byteLength(payload) <= nativePayloadBytesMax;
    await notifyTask(transaction, task, {
      callbackId: job.callback_id ?? vendorId,
      extra: {
        vendor,
        vendor_task_id: vendorId,
        vendor_status: status,
        ...(isShort && { vendor_payload: payload }),
      },
    });
  };
}
