/** Puts the native room together: which vendor is served under which prefix, and how its jobs are followed. */
import type { PoolClient, Pool } from "pg";
import type { Logger } from "pino";
import { NativeService } from "../../gen/uas/native/v1/native_service_pb.ts";
import type { Ledger } from "../billing/ledger/ledger.ts";
import type { PriceBook } from "../billing/prices/price-book.ts";
import type { Config, Settings } from "../config/config.ts";
import { nativePayloadBytesMax, nativeObjectTtlMs, taskKeptMs } from "../config/limits.ts";
import { singly } from "../core/async.ts";
import type { Metrics } from "../core/metrics.ts";
import type { NativePrefix } from "../core/native-prefix.ts";
import { serve, type Service } from "../core/service.ts";
import type { Database } from "../db/database.ts";
import type { Catalogue } from "../inference/catalogue.ts";
import type { InferenceHandlers } from "../inference/handlers.ts";
import type { RunningCalls } from "../inference/running-calls.ts";
import { createOutsideTasks } from "../task/external.ts";
import { createTaskPricing } from "../task/module.ts";
import { tellTask } from "../task/notify.ts";
import type { TaskRow } from "../task/task-row.ts";
import type { MoveNeeds } from "../task/transition.ts";
import type { WorkerVendor } from "../task/worker-options.ts";
import { vendorKinds } from "../vendor/index.ts";
import type { Vendor } from "../vendor/vendor.ts";
import { headerList, type NativeVendor, type NativeContext } from "./context.ts";
import { createFollowing, type FollowingOptions } from "./following.ts";
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
  readonly onLowBalance: NonNullable<MoveNeeds["onLowBalance"]>;
  /** For tests. Default: as {@link FollowingOptions} has it. */
  readonly taskTimings?: Pick<FollowingOptions, "refreshMs">;
}

/** What its service needs of the other rooms. */
interface NativeServing {
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

/* What the webhook of a job has beside that of every task: how its vendor speaks of it (R-HOOK-7). */

/** What telling needs. */
interface TellingOptions extends Pick<NativeContext, "publicUrl" | "links"> {
  /** By name. */
  readonly vendors: ReadonlyMap<string, NativeVendor>;
}

/** Tells of tasks: of those in our own form as ever. */
function createTell(options: TellingOptions) {
  return async (transaction: PoolClient, task: TaskRow): Promise<void> => {
    if (task.callback_url === null) return;
    if (task.path === null) return tellTask(transaction, task);
    const job = await jobOfTask(transaction, task.id);
    if (job === undefined) return tellTask(transaction, task);
    if (task.finish_time === null && !job.wants_progress) return;
    const at = options.vendors.get(job.vendor);
    const { body, vendor, vendor_id: vendorId, status } = job;
    const payload =
      at &&
      body &&
      customerBody({ at, accountId: task.account_id }, body, options).toString("utf8");
    const isShort = payload && Buffer.byteLength(payload) <= nativePayloadBytesMax;
    await tellTask(transaction, task, {
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

/* Forgets what vendors have forgotten long ago. */

/** The jobs of a process. Every one may run them. */
interface NativeExpiry {
  start(): void;
  /** Ends; what is under way is waited for. */
  stop(): Promise<void>;
  /** Forgets what is too old, now. Returns how many objects and jobs that were. */
  expire(): Promise<number>;
}

/** How often, in milliseconds. */
const everyMs = 60 * 60 * 1_000;

/** How many go in one statement: a long one would hold up others. */
const batch = 1_000;

const statements: readonly (readonly [text: string, ttlMs: number])[] = [
  [
    `delete from native_object where ctid in (select ctid from native_object
      where create_time < now() - $1 * interval '1 ms' limit ${batch} for update skip locked)`,
    nativeObjectTtlMs,
  ],
  // A day longer than the tasks that they are: those go by their end.
  [
    `delete from native_job where task_id in (select job.task_id from native_job job
      left join task on task.id = job.task_id where task.id is null
      and job.refresh_time < now() - $1 * interval '1 ms' limit ${batch})`,
    taskKeptMs,
  ],
];

/** Makes it; {@link NativeExpiry.start} begins. */
function createNativeExpiry(
  pool: Pool,
  warn: (message: string, fields: object) => void,
): NativeExpiry {
  const expire = async (): Promise<number> => {
    let gone = 0;
    for (const [text, ttlMs] of statements) {
      for (let count = batch; count === batch; gone += count) {
        count = (await pool.query(text, [ttlMs])).rowCount ?? 0;
      }
    }
    return gone;
  };
  const expiring = singly(expire, (error) =>
    warn("forgetting old objects of vendors failed: tried again", { err: error }),
  );
  let timer: NodeJS.Timeout | undefined;
  return {
    expire,
    start() {
      timer = setInterval(() => void expiring(), everyMs).unref();
      void expiring();
    },
    async stop() {
      clearInterval(timer);
      await expiring.ended();
    },
  };
}
