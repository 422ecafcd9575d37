/**
 * Connects the parts of the native room: vendors' native APIs under their prefixes, their jobs, and
 * the webhooks of jobs.
 */
import type { PoolClient } from "pg";
import type { Logger } from "pino";
import { NativeService } from "../../gen/uas/native/v1/native_service_pb.ts";
import type { Ledger } from "../billing/ledger/ledger.ts";
import type { Refusals } from "../calls/pipeline/refusals.ts";
import { type PriceBook, createPricing } from "../billing/prices/pricing.ts";
import type { Settings } from "../config/config.ts";
import type { LiveConfig } from "../config/live-config.ts";
import { uploadLimitsDefault } from "../config/routing.ts";
import { nativePayloadBytesMax } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { derived, refill } from "../core/derived.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { NativePrefix } from "../core/native-prefix.ts";
import { serve, type Service } from "../core/contract-rules.ts";
import type { Database } from "../db/database.ts";
import type { Admission } from "../calls/admission.ts";
import type { Catalogue } from "../calls/catalogue.ts";
import type { InferenceHandlers } from "../calls/handlers.ts";
import type { Upstream } from "../routing/upstream.ts";
import type { RunningCalls } from "../calls/running-calls.ts";
import { createExternalTasks } from "../task/work/external.ts";
import { notifyTask } from "../task/work/notify.ts";
import type { TaskRow } from "../task/task-row.ts";
import type { TransitionOptions } from "../task/transition.ts";
import type { WorkerVendor } from "../task/work/worker-options.ts";
import { vendorKinds } from "../provider/index.ts";
import type { NativeRoute } from "../provider/native.ts";
import type { Vendor } from "../provider/vendor.ts";
import { headerList, type NativeContext } from "./context.ts";
import type { NativeMount } from "./mount.ts";
import { createJobTracker, type JobTracker, type JobTrackerOptions } from "./job-tracker.ts";
import { createLinks } from "./links.ts";
import { createFindNativeModel, type FindNativeModel } from "./models.ts";
import { customerBody } from "./send.ts";
import { createUploads } from "./uploads.ts";
import { createVersionLookup } from "./versions.ts";
import { createNativeHandlers, createNativeService, type NativeHandlers } from "./service.ts";
import { jobOfTask } from "./store.ts";
import { type NativeJobs, createNativeJobs } from "./jobs.ts";

/** Options of {@link createNativeRoom}. */
export interface NativeRoomOptions {
  readonly clock: Clock;
  readonly database: Database;
  readonly config: LiveConfig;
  readonly settings: Pick<Settings, "publicUrl">;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly upstream: Pick<Upstream, "targets" | "jobs">;
  readonly prices: PriceBook;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Whether a key can still be used. */
  readonly isKeyUsable: NativeContext["isKeyUsable"];
  /** Called when a task is due. */
  readonly onNews: () => void;
  readonly onLowBalance: NonNullable<TransitionOptions["onLowBalance"]>;
  /** For tests. The values of limits.ts by default. */
  readonly taskTimings?: Pick<JobTrackerOptions, "refreshMs"> | undefined;
}

/** Functions of other rooms that the service uses. */
interface NativeRoomParts {
  readonly admission: Admission;
  readonly catalogue: Catalogue;
  readonly handlers: InferenceHandlers;
  readonly calls: RunningCalls;
  readonly ledger: Pick<Ledger, "record">;
  readonly refusals: Pick<Refusals, "passes">;
}

/** The native room of a server. */
export interface NativeRoom {
  /** Returns the prefixes that the facade serves now: the same list until they change. */
  readonly prefixes: () => readonly NativePrefix[];
  /** By vendor name: native jobs as tasks, for workers. */
  readonly natives: ReadonlyMap<string, WorkerVendor>;
  /** Enqueues the webhook of a task, with the vendor's report if it is a native job (R-HOOK-7). */
  readonly notify: NonNullable<TransitionOptions["notify"]>;
  readonly jobs: NativeJobs;
  serve(parts: NativeRoomParts): { readonly handlers: NativeHandlers; readonly service: Service };
  /**
   * Sets the gateway's address, which is public if the settings have no other. Returns its
   * argument.
   */
  servedAt<Urls extends { readonly publicUrl: string }>(urls: Urls): Urls;
}

/** Creates the native room. */
export function createNativeRoom(options: NativeRoomOptions): NativeRoom {
  const { database, clock, config, settings, prices, metrics, log } = options;
  const { onNews, onLowBalance } = options;
  const { taskPool: pool, jobPool } = database;
  const vendors = new Map(mountsOf(options));
  let listening = "";
  const publicUrl = (): string => settings.publicUrl ?? listening;
  const links = createLinks(options.masterKey, clock);
  const jobTracker = createJobTracker({ pool, onNews, refreshMs: options.taskTimings?.refreshMs });
  const byName = new Map(mountsByName(vendors));
  const natives = new Map(workerVendors(byName, jobTracker));
  config.onExchange(() => {
    refill(vendors, mountsOf(options));
    refill(byName, mountsByName(vendors));
    refill(natives, workerVendors(byName, jobTracker));
  });
  const notify = createNotify({ vendors: byName, links, publicUrl });
  const needs = { pool, clock, notify, onLowBalance, onNews };
  const external = createExternalTasks({ ...needs, pricing: createPricing(prices, clock) });
  const { allowHosts } = config.webhooks;
  const names = derived(
    () => config.models,
    (models) => createFindNativeModel(models.values()),
  );
  const findModel: FindNativeModel = (vendor, name) => names()(vendor, name);
  const { jobs: routing } = options.upstream;
  const versions = createVersionLookup(findModel);
  const own = { vendors, clock, findModel, versions, pool, external, jobTracker };
  const uploads = createUploads(pool, () => config.limits.uploads ?? uploadLimitsDefault);
  const { isKeyUsable } = options;
  const context = { ...own, links, uploads, isKeyUsable, allowHosts, publicUrl };
  return {
    prefixes: derived(
      () => config.vendors,
      () => prefixesOf(vendors),
    ),
    natives,
    notify,
    jobs: createNativeJobs(jobPool, (message, fields) => log.warn(fields, message)),
    serve(parts) {
      const handlers = createNativeHandlers({ ...parts, ...context, routing, metrics, log });
      return { handlers, service: serve(NativeService, createNativeService(handlers)) };
    },
    servedAt(urls) {
      listening = urls.publicUrl.replace(/\/$/, "");
      return urls;
    },
  };
}

function prefixesOf(mounts: ReadonlyMap<string, NativeMount>): readonly NativePrefix[] {
  return [...mounts.values()].map(({ prefix, api }) => ({
    prefix,
    ...api,
    isRecorded: (method, path) =>
      api.routes.some(
        (route) =>
          recordedKinds.has(route.kind) && route.method === method && route.path.test(path),
      ),
  }));
}

function mountsByName(
  mounts: ReadonlyMap<string, NativeMount>,
): (readonly [string, NativeMount])[] {
  return [...mounts.values()].map((mount) => [mount.config.name, mount]);
}

/** The vendors of native jobs, by name, for workers. */
function workerVendors(
  mounts: ReadonlyMap<string, NativeMount>,
  jobTracker: JobTracker,
): (readonly [string, WorkerVendor])[] {
  return [...mounts].map(([name, mount]) => [
    name,
    {
      tasks: jobTracker.tasksOf(mount),
      maxInFlight: undefined,
      baseUrl: mount.config.baseUrl,
      isFileOptional: true,
    },
  ]);
}

/** The kinds of routes whose requests are in the call log. */
const recordedKinds: ReadonlySet<NativeRoute["kind"]> = new Set(["call", "submit", "cache"]);

/** The vendors with a configured prefix whose kind has a native API. */
function mountsOf({
  config,
  vendors,
  upstream,
}: Pick<NativeRoomOptions, "config" | "vendors" | "upstream">): ReadonlyMap<string, NativeMount> {
  const found = new Map<string, NativeMount>();
  for (const [name, vendor] of vendors) {
    const own = config.vendors.get(name);
    const api = vendorKinds[own?.kind ?? ""]?.native;
    const { native: transport } = vendor;
    if (!own?.nativePrefix || api === undefined || transport === undefined) continue;
    const byCredential = new Map<string, NativeMount>();
    const first = {
      prefix: own.nativePrefix,
      vendor,
      config: own,
      api,
      transport,
      credential: "",
      byCredential,
      requestHeaders: headerList(api.requestHeaders),
      responseHeaders: headerList(api.responseHeaders),
    };
    found.set(own.nativePrefix, first);
    const { credentials = [] } = upstream.targets.vendor(name) ?? {};
    if (credentials.length < 2) continue;
    for (const { credential, client } of credentials) {
      const { native = transport } = client;
      byCredential.set(credential, { ...first, vendor: client, transport: native, credential });
    }
  }
  return found;
}

interface NotifyRoomOptions extends Pick<NativeContext, "publicUrl" | "links"> {
  /** By name. */
  readonly vendors: ReadonlyMap<string, NativeMount>;
}

/** Creates the webhook of tasks: native jobs add their vendor's description (R-HOOK-7). */
function createNotify(options: NotifyRoomOptions) {
  return async (transaction: PoolClient, task: TaskRow): Promise<void> => {
    if (task.callback_url === null) return;
    if (task.path === null) return notifyTask(transaction, task);
    const job = await jobOfTask(transaction, task.id);
    if (job === undefined) return notifyTask(transaction, task);
    if (task.finish_time === null && !job.wants_progress) return;
    const mount = options.vendors.get(job.vendor);
    const { body, vendor, vendor_id: vendorId, status } = job;
    const owner = { accountId: task.account_id, keyId: task.key_id };
    const payload = mount && body && customerBody({ mount, owner }, body, options).toString("utf8");
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
