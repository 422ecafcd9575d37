/**
 * Follows jobs at their vendors: what the vendor said last is kept, asked for again when it is older than a moment,
 * and by one question for all who ask at once. What has ended is never asked for again.
 */
import type { Pool } from "pg";
import { nativeKeptBytesMax, nativeRefreshMs, replyBytesMax } from "../config/limits.ts";
import { HttpFailure } from "../http/failure.ts";
import { hintTask } from "../task/vendor-notifications.ts";
import type { NativeSend } from "../vendor/native-http.ts";
import type { NativeTask } from "../vendor/native.ts";
import {
  type CancelAnswer,
  type TaskNews,
  type VendorTasks,
  VendorTrouble,
} from "../vendor/task.ts";
import type { NativeVendor } from "./context.ts";
import { parseObject } from "./reply-stream.ts";
import { claimObjects, findJob, type NativeJob, type Said, sayJob, touchJob } from "./store.ts";

/** How a job stands. */
export interface Followed {
  /** What the vendor said. */
  readonly body: Buffer;
  /** Whether it has ended. */
  readonly isOver: boolean;
  /** Whether it says how the job stands: answers to a cancel may not. */
  readonly isJob: boolean;
}

/** What {@link createFollowing} needs. */
export interface FollowingOptions {
  readonly pool: Pool;
  /** Called when there is something for workers to look at. */
  readonly onNews: () => void;
  /** How old what is told of a job may be, in milliseconds. Default `nativeRefreshMs`. */
  readonly refreshMs?: number | undefined;
}

/** Follows jobs. */
export interface Following {
  /** How a job stands. @throws HttpFailure, VendorTrouble where the vendor does not say and nothing is kept */
  look(at: NativeVendor, job: NativeJob, task: NativeTask): Promise<Followed>;
  /** Keeps what a vendor said of a job by itself, such as in its answer to a cancel. */
  take(job: NativeJob, task: NativeTask, body: Buffer): Promise<void>;
  /** How workers follow jobs of a vendor. */
  tasksOf(at: NativeVendor): VendorTasks;
}

/** How long a question about a job may take, in milliseconds. */
const lookMs = 30_000;

/** Makes it. */
export function createFollowing(options: FollowingOptions): Following {
  const underWay = new Map<string, Promise<Followed>>();
  const following: Following = {
    look(at, job, task) {
      const running = underWay.get(job.task_id);
      if (running !== undefined) return running;
      const look = lookAt({ at, job, task }, options).finally(() => underWay.delete(job.task_id));
      underWay.set(job.task_id, look);
      return look;
    },
    take: (job, task, body) => take({ job, task }, body, options),
    tasksOf: (at) => vendorTasks(at, following, options),
  };
  return following;
}

interface Look {
  readonly at: NativeVendor;
  readonly job: NativeJob;
  readonly task: NativeTask;
}

async function lookAt({ at, job, task }: Look, options: FollowingOptions): Promise<Followed> {
  const kept = job.body === null ? undefined : followed(job.body, task);
  const { refreshMs = nativeRefreshMs } = options;
  const isFresh = (job.age_ms ?? Number.POSITIVE_INFINITY) < refreshMs;
  if (kept?.isOver || (kept !== undefined && isFresh)) return kept;
  try {
    const body = await ask(at, { method: "GET", target: task.path(...placeOf(job)) });
    await take({ job, task }, body, options);
    return followed(body, task);
  } catch (error) {
    const isVendors = error instanceof HttpFailure || error instanceof VendorTrouble;
    // What was said last is better than nothing: the job runs on whether anybody hears of it or not.
    if (isVendors && kept !== undefined) return kept;
    throw error;
  }
}

/** @throws HttpFailure; VendorTrouble where the answer says nothing about the job */
async function ask(at: NativeVendor, asked: Asked): Promise<Buffer> {
  const { status, body } = await answerOf(at, asked);
  if (status >= 200 && status < 300) return body;
  throw troubleOf(at, status, body);
}

function troubleOf({ vendor }: NativeVendor, status: number, body: Buffer): VendorTrouble {
  const fault = vendor.faultOf?.(status, body);
  return new VendorTrouble(status, `answered about a job with status ${status}`, fault);
}

type Asked = Pick<NativeSend, "method" | "target">;

/** What a vendor answers, whatever it is. @throws HttpFailure */
async function answerOf({ transport }: NativeVendor, asked: Asked) {
  const [{ name: base }] = transport.bases;
  const signal = AbortSignal.timeout(lookMs);
  const headers = { accept: "application/json" };
  const reply = await transport.send({ base, headers, body: [], signal, ...asked });
  return { ...reply, body: await reply.body.whole(replyBytesMax) };
}

/** What a job is asked for by. */
function placeOf({ vendor_id: id, vendor_model: model }: NativeJob): [id: string, model: string] {
  return [id ?? "", model ?? ""];
}

/** What a vendor says of a job. */
function followed(body: Buffer, task: NativeTask): Followed {
  const json = parseObject(body.toString("utf8"));
  if (json === undefined) return { body, isOver: false, isJob: false };
  try {
    const { status } = task.newsOf(json, () => ({}));
    return { body, isOver: status !== "running", isJob: true };
  } catch (error) {
    if (error instanceof VendorTrouble) return { body, isOver: false, isJob: false };
    throw error;
  }
}

async function take(
  { job, task }: Pick<Look, "job" | "task">,
  body: Buffer,
  { pool, onNews }: FollowingOptions,
): Promise<void> {
  const json = parseObject(body.toString("utf8"));
  const owner = { vendor: job.vendor, accountId: job.account_id };
  // Before anybody can ask for them.
  await claimObjects(pool, owner, (json && task.creates?.(json)) ?? []);
  const { isOver, isJob } = followed(body, task);
  const said = saidOf(body, task, job.status);
  await (isJob ? sayJob(pool, job.task_id, said) : touchJob(pool, job.task_id, said.status));
  if (isJob && !isOver) return;
  await hintTask(pool, job.attempt_token ?? "");
  onNews();
}

/** What is kept of it. */
export function saidOf(body: Buffer, task: NativeTask, before = ""): Said {
  const json = parseObject(body.toString("utf8"));
  const status = json === undefined ? before : task.statusOf(json, before);
  return { status, body: body.length <= nativeKeptBytesMax ? body : null };
}

/** Jobs as workers know tasks. They are never submitted by workers: nobody knows a repetition. */
function vendorTasks(
  at: NativeVendor,
  following: Following,
  { pool }: FollowingOptions,
): VendorTasks {
  const find = async (id: string): Promise<{ job: NativeJob; task: NativeTask }> => {
    const job = await findJob(pool, at.config.name, id);
    const task = job && taskOf(at, job.word);
    if (job === undefined || task === undefined) throw new VendorTrouble(404, `no job ${id}`);
    return { job, task };
  };
  const newsOf = (body: Buffer, task: NativeTask): TaskNews => {
    const json = parseObject(body.toString("utf8"));
    if (json === undefined) throw new VendorTrouble(200, "answered with something else than a job");
    return task.newsOf(json, at.transport.headersFor);
  };
  return {
    resubmit: "blind",
    types: new Set(),
    canCancel: at.api.routes.some((route) => route.kind === "submit" && route.task.cancel),
    submit: () => Promise.reject(new TypeError("jobs are submitted by their clients")),
    async poll(id) {
      const { job, task } = await find(id);
      const news = newsOf((await following.look(at, job, task)).body, task);
      const isOver = news.status !== "running";
      return isOver && task.result !== undefined ? await resultNews(at, job, task.result) : news;
    },
    async cancel(id): Promise<CancelAnswer> {
      const { job, task } = await find(id);
      if (task.cancel === undefined) return "too_late";
      const { method, path } = task.cancel;
      const { status: answered, body } = await answerOf(at, {
        method,
        target: path(...placeOf(job)),
      });
      if (lateStatuses.has(answered)) return "too_late";
      if (answered < 200 || answered > 299) throw troubleOf(at, answered, body);
      await following.take(job, task, body);
      if (!followed(body, task).isJob) return "requested";
      const { status } = newsOf(body, task);
      if (status === "cancelled") return "cancelled";
      return status === "running" ? "requested" : "too_late";
    },
    units: (params) => params,
  };
}

/** By which vendors say that a job cannot be stopped any more. */
const lateStatuses = new Set([400, 404, 409]);

/** What an ended job came to. @throws HttpFailure; VendorTrouble where that is not known yet */
async function resultNews(
  at: NativeVendor,
  job: NativeJob,
  result: NonNullable<NativeTask["result"]>,
): Promise<TaskNews> {
  const target = result.path(...placeOf(job));
  const { status, headers, body } = await answerOf(at, { method: "GET", target });
  const trouble = troubleOf(at, status, body);
  if (trouble.fault !== undefined) throw trouble;
  return result.newsOf({ status, headers, body, asked: job.asked ?? {}, before: job.status });
}

/** The jobs of a collection. */
export function taskOf({ api }: Pick<NativeVendor, "api">, word: string): NativeTask | undefined {
  for (const route of api.routes) {
    if (route.kind === "submit" && route.task.word === word) return route.task;
  }
  return undefined;
}
