/**
 * Tracks native jobs at their vendors. The last report is stored, and refreshed after a moment, by
 * one request for all concurrent readers. The report of an ended job is final.
 */
import type { Pool } from "pg";
import { nativeKeptBytesMax, nativeRefreshMs, replyBytesMax } from "../core/limits.ts";
import { limitTime } from "../core/async.ts";
import { HttpFailure } from "../http/failure.ts";
import { recordNotification } from "../task/work/vendor-notifications.ts";
import type { NativeSend } from "../provider/native-http.ts";
import type { NativeTask } from "../provider/native.ts";
import {
  type CancelAnswer,
  type TaskUpdate,
  type VendorTasks,
  VendorReplyError,
} from "../provider/task.ts";
import { type NativeMount, withCredential } from "./mount.ts";
import { parseObject } from "./reply-stream.ts";
import {
  claimObjects,
  findJob,
  type NativeJob,
  type SavedAnswer,
  saveAnswer,
  markJobStale,
} from "./store.ts";

/** The state of a job, as its vendor reported it. */
export interface JobReport {
  /** The vendor's reply. */
  readonly body: Buffer;
  /** Whether the job has ended. */
  readonly isOver: boolean;
  /** Whether the reply describes the job: replies to a cancel may not. */
  readonly isJob: boolean;
}

/** Options of {@link createJobTracker}. */
export interface JobTrackerOptions {
  readonly pool: Pool;
  /** Called when a task is due. */
  readonly onNews: () => void;
  /**
   * Maximum age of a report before it is refreshed. Default: the vendor's value, otherwise
   * `nativeRefreshMs`.
   */
  readonly refreshMs?: number | undefined;
}

/** Tracks native jobs. */
export interface JobTracker {
  /**
   * Reads the state of a job.
   *
   * @throws HttpFailure, VendorReplyError if the vendor fails and no report is stored
   */
  refresh(mount: NativeMount, job: NativeJob, task: NativeTask): Promise<JobReport>;
  /**
   * As `refresh`, but never from the stored report of a running job: the caller may already have
   * been notified of its end.
   */
  refreshNow(mount: NativeMount, job: NativeJob, task: NativeTask): Promise<JobReport>;
  /** Stores a vendor's reply to another request, such as a cancel. */
  recordAnswer(job: NativeJob, task: NativeTask, body: Buffer): Promise<void>;
  /** The task interface of a vendor's jobs, for workers. */
  tasksOf(mount: NativeMount): VendorTasks;
}

/** The timeout of a request about a job. */
const requestTimeoutMs = 30_000;

/** Creates the job tracker. */
export function createJobTracker(options: JobTrackerOptions): JobTracker {
  const refreshes = new Map<string, Promise<JobReport>>();
  const keptMs = ({ refreshMs = nativeRefreshMs }: NativeTask): number =>
    options.refreshMs ?? refreshMs;
  const start = (lookup: JobLookup, maxAgeMs: number): Promise<JobReport> => {
    const { task_id: id } = lookup.job;
    const look = refreshJob(lookup, maxAgeMs, options).finally(() => {
      if (refreshes.get(id) === look) refreshes.delete(id);
    });
    refreshes.set(id, look);
    return look;
  };
  const tracker: JobTracker = {
    refresh: (mount, job, task) =>
      refreshes.get(job.task_id) ?? start({ mount, job, task }, keptMs(task)),
    async refreshNow(mount, job, task) {
      // A request in progress may have been answered before the end.
      const running = await refreshes.get(job.task_id)?.catch(() => undefined);
      if (running?.isOver) return running;
      return refreshes.get(job.task_id) ?? start({ mount, job, task }, 0);
    },
    recordAnswer: (job, task, body) => recordAnswer({ job, task }, body, options),
    tasksOf: (mount) => vendorTasks(mount, tracker, options),
  };
  return tracker;
}

interface JobLookup {
  readonly mount: NativeMount;
  readonly job: NativeJob;
  readonly task: NativeTask;
}

async function refreshJob(
  { mount, job, task }: JobLookup,
  maxAgeMs: number,
  options: JobTrackerOptions,
): Promise<JobReport> {
  const kept = job.body === null ? undefined : readReport(job.body, task);
  const isFresh = (job.age_ms ?? Number.POSITIVE_INFINITY) < maxAgeMs;
  if (kept?.isOver || (kept !== undefined && isFresh)) return kept;
  try {
    const body = await request(withCredential(mount, job.credential), {
      method: "GET",
      target: task.path(...idsOf(job)),
    });
    await recordAnswer({ job, task }, body, options);
    return readReport(body, task);
  } catch (error) {
    const isVendors = error instanceof HttpFailure || error instanceof VendorReplyError;
    // The last report is better than an error: the job continues in any case.
    if (isVendors && kept !== undefined) return kept;
    throw error;
  }
}

/**
 * Requests a job's state.
 *
 * @throws HttpFailure; VendorReplyError if the status is no success
 */
async function request(mount: NativeMount, asked: VendorRequest): Promise<Buffer> {
  const { status, body } = await answerOf(mount, asked);
  if (status >= 200 && status < 300) return body;
  throw troubleOf(mount, status, body);
}

function troubleOf({ vendor }: NativeMount, status: number, body: Buffer): VendorReplyError {
  const fault = vendor.faultOf?.(status, body);
  return new VendorReplyError(status, `answered about a job with status ${status}`, fault);
}

type VendorRequest = Pick<NativeSend, "method" | "target">;

/** The vendor's reply with any status. @throws HttpFailure */
async function answerOf({ transport }: NativeMount, asked: VendorRequest) {
  const [{ name: base }] = transport.bases;
  using limit = limitTime(requestTimeoutMs, []);
  const { signal } = limit;
  const headers = { accept: "application/json" };
  const reply = await transport.send({ base, headers, body: [], signal, ...asked });
  return { ...reply, body: await reply.body.whole(replyBytesMax) };
}

/** The vendor's ids of a job and its model. */
function idsOf({ vendor_id: id, vendor_model: model }: NativeJob): [id: string, model: string] {
  return [id ?? "", model ?? ""];
}

/** Reads a vendor's reply about a job. */
function readReport(body: Buffer, task: NativeTask): JobReport {
  const json = parseObject(body.toString("utf8"));
  if (json === undefined) return { body, isOver: false, isJob: false };
  try {
    const { status } = task.readUpdate(json, () => ({}));
    return { body, isOver: status !== "running", isJob: true };
  } catch (error) {
    if (error instanceof VendorReplyError) return { body, isOver: false, isJob: false };
    throw error;
  }
}

async function recordAnswer(
  { job, task }: Pick<JobLookup, "job" | "task">,
  body: Buffer,
  { pool, onNews }: JobTrackerOptions,
): Promise<void> {
  const json = parseObject(body.toString("utf8"));
  const { vendor, account_id: accountId, credential } = job;
  const owner = { vendor, accountId, credential };
  // Before a client can refer to them.
  await claimObjects(pool, owner, (json && task.creates?.(json)) ?? []);
  const { isOver, isJob } = readReport(body, task);
  const said = savedAnswerOf(body, task, job.status);
  await (isJob
    ? saveAnswer(pool, job.task_id, said)
    : markJobStale(pool, job.task_id, said.status));
  if (isJob && !isOver) return;
  await recordNotification(pool, job.attempt_token ?? "");
  onNews();
}

/** The report that is stored of a reply. @param before the status before it */
export function savedAnswerOf(body: Buffer, task: NativeTask, before = ""): SavedAnswer {
  const json = parseObject(body.toString("utf8"));
  const status = json === undefined ? before : task.statusOf(json, before);
  return { status, body: body.length <= nativeKeptBytesMax ? body : null };
}

/** Jobs as tasks. Workers never submit them: native submits are not idempotent. */
function vendorTasks(
  mount: NativeMount,
  tracker: JobTracker,
  { pool }: JobTrackerOptions,
): VendorTasks {
  const find = async (id: string): Promise<{ job: NativeJob; task: NativeTask }> => {
    const job = await findJob(pool, mount.config.name, id);
    const task = job && taskOf(mount, job.word);
    if (job === undefined || task === undefined) throw new VendorReplyError(404, `no job ${id}`);
    return { job, task };
  };
  const newsOf = (body: Buffer, { job, task }: Pick<JobLookup, "job" | "task">): TaskUpdate => {
    const json = parseObject(body.toString("utf8"));
    if (json === undefined)
      throw new VendorReplyError(200, "answered with something else than a job");
    const { headersFor } = withCredential(mount, job.credential).transport;
    return task.readUpdate(json, headersFor, job.asked ?? {});
  };
  return {
    resubmit: "blind",
    types: new Set(),
    canCancel: mount.api.routes.some((route) => route.kind === "submit" && route.task.cancel),
    submit: () => Promise.reject(new TypeError("jobs are submitted by their clients")),
    async poll(id) {
      const { job, task } = await find(id);
      const news = newsOf((await tracker.refresh(mount, job, task)).body, { job, task });
      const isOver = news.status !== "running";
      return isOver && task.result !== undefined ? await resultNews(mount, job, task.result) : news;
    },
    async cancel(id): Promise<CancelAnswer> {
      const { job, task } = await find(id);
      if (task.cancel === undefined) return "too_late";
      const { method, path } = task.cancel;
      const { status: answered, body } = await answerOf(withCredential(mount, job.credential), {
        method,
        target: path(...idsOf(job)),
      });
      if (lateStatuses.has(answered)) return "too_late";
      if (answered < 200 || answered > 299) throw troubleOf(mount, answered, body);
      await tracker.recordAnswer(job, task, body);
      if (!readReport(body, task).isJob) return "requested";
      const { status } = newsOf(body, { job, task });
      if (status === "cancelled") return "cancelled";
      return status === "running" ? "requested" : "too_late";
    },
    units: (params) => params,
  };
}

/** Statuses that mean that a job can no longer be cancelled. */
const lateStatuses = new Set([400, 404, 409]);

/**
 * The result of an ended job.
 *
 * @throws HttpFailure; VendorReplyError if it is not available yet
 */
async function resultNews(
  mount: NativeMount,
  job: NativeJob,
  result: NonNullable<NativeTask["result"]>,
): Promise<TaskUpdate> {
  const target = result.path(...idsOf(job));
  const own = withCredential(mount, job.credential);
  const { status, headers, body } = await answerOf(own, { method: "GET", target });
  const trouble = troubleOf(mount, status, body);
  if (trouble.fault !== undefined) throw trouble;
  return result.readUpdate({
    status,
    headers,
    body,
    requested: job.asked ?? {},
    before: job.status,
  });
}

/** The task declaration of a collection of jobs; undefined if the vendor has none of that name. */
export function taskOf({ api }: Pick<NativeMount, "api">, word: string): NativeTask | undefined {
  for (const route of api.routes) {
    if (route.kind === "submit" && route.task.collection === word) return route.task;
  }
  return undefined;
}
