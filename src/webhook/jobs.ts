/** What the webhook room does by itself: old events are deleted, waiting ones counted. SQL: sets of rows, in batches. */
import type { Pool } from "pg";
import { webhookKeptMs } from "../config/limits.ts";
import { singly } from "../core/async.ts";

/** What waits, on all nodes together. */
export interface WebhookStats {
  /** Deliveries that wait for their time, their receiver or a slot. */
  readonly pending: number;
  /** Receivers whose deliveries are parked. */
  readonly deadEndpoints: number;
}

/** What {@link createWebhookJobs} needs. */
export interface WebhookJobsOptions {
  readonly pool: Pool;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every node may run them at once. */
export interface WebhookJobs {
  /** Begins, with a first run in the background. */
  start(): void;
  /** Ends; what is under way is waited for. */
  stop(): Promise<void>;
  /** Deletes what is older than its time, now. Returns how many events that were. */
  expire(): Promise<number>;
  /** As it was counted last. */
  readonly stats: () => WebhookStats;
  /** Counts now. */
  count(): Promise<WebhookStats>;
}

/** How often what is too old is deleted, in milliseconds. */
const expireEveryMs = 10 * 60 * 1_000;

/** How often is counted, in milliseconds. */
const countEveryMs = 15_000;

/** How many events go in one statement: a long one would hold up others. */
const batch = 1_000;

/** Attempts and delivery go with their event. An id begins with its time. */
const expireSql = `
  with old as (
    select id from webhook_event where id < $1 order by id limit ${batch} for update skip locked
  ), tried as (delete from webhook_attempt where delivery_id in (select id from old)),
  sent as (delete from webhook_delivery where id in (select id from old))
  delete from webhook_event where id in (select id from old)`;

const countSql = `
  select (select count(*)::int from webhook_delivery where state = 1) as pending,
    (select count(*)::int from webhook_endpoint where dead_time is not null) as "deadEndpoints"`;

/** Makes the jobs; {@link WebhookJobs.start} begins. */
export function createWebhookJobs({ pool, warn = () => {} }: WebhookJobsOptions): WebhookJobs {
  const timers: NodeJS.Timeout[] = [];
  let stats: WebhookStats = { pending: 0, deadEndpoints: 0 };
  const count = async (): Promise<WebhookStats> => {
    const { rows } = await pool.query<WebhookStats>(countSql);
    return (stats = rows[0] ?? stats);
  };
  const expire = (): Promise<number> => expireEvents(pool, Date.now() - webhookKeptMs);
  const failed = (what: string) => (error: unknown) =>
    warn(`${what} webhooks failed: tried again later`, { err: error });
  const jobs = [
    { job: singly(expire, failed("deleting old")), everyMs: expireEveryMs },
    { job: singly(count, failed("counting")), everyMs: countEveryMs },
  ];
  return {
    count,
    expire,
    stats: () => stats,
    start() {
      if (timers.length > 0) return;
      for (const { job, everyMs } of jobs) {
        void job();
        timers.push(setInterval(() => void job(), everyMs).unref());
      }
    },
    async stop() {
      for (const timer of timers.splice(0)) clearInterval(timer);
      await Promise.all(jobs.map(({ job }) => job.ended()));
    },
  };
}

async function expireEvents(pool: Pool, beforeMs: number): Promise<number> {
  const hex = beforeMs.toString(16).padStart(12, "0");
  const before = `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
  for (let deleted = 0; ; ) {
    const { rowCount } = await pool.query(expireSql, [before]);
    deleted += rowCount ?? 0;
    if ((rowCount ?? 0) < batch) return deleted;
  }
}
