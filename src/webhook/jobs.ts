/**
 * The background jobs: old events are deleted, and pending deliveries are counted for the operator.
 * SQL: sets of rows, in batches.
 */
import { webhookKeptMs } from "../core/limits.ts";
import type { Pool } from "pg";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import { databaseTime, firstId } from "../db/partition.ts";

/** Counts of all nodes together. */
interface WebhookStats {
  /** Deliveries that wait for their time, their receiver or a slot. */
  readonly pending: number;
  /** Receivers whose deliveries are parked. */
  readonly deadEndpoints: number;
}

/** The database, and the reports of {@link createWebhookJobs}. */
interface WebhookJobsOptions {
  readonly pool: Pool;
  /** Logs a warning for operators, without secrets. Does nothing by default. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every node may run them at once. */
interface WebhookJobs extends PeriodicJobs {
  /** Deletes expired events now. Returns their number. */
  expire(): Promise<number>;
  /** The last count. */
  readonly stats: () => WebhookStats;
  /** Counts now. */
  count(): Promise<WebhookStats>;
}

/** Interval at which old events are deleted. */
const expireEveryMs = 10 * 60 * 1_000;

/** Interval at which deliveries are counted. */
const countEveryMs = 15_000;

/** Number of events that one statement deletes: a long statement would delay others. */
const batch = 1_000;

/**
 * Attempts and delivery are deleted with their event. Unsent deliveries stay at any age, unless
 * their receiver is dead. An id begins with a time too, by which old events are found; but the
 * database's clock may have been wrong then. $1: the first id to keep, $2: the age in milliseconds.
 */
const expireSql = `
  with old as (
    select id from webhook_event event
    where id < $1 and create_time < now() - $2 * interval '1 ms'
      and not exists (select from webhook_delivery delivery
        left join webhook_endpoint endpoint on endpoint.id = delivery.endpoint_id
        where delivery.id = event.id and delivery.state in (1, 2) and endpoint.dead_time is null)
    order by id limit ${batch} for update skip locked
  ), tried as (delete from webhook_attempt where delivery_id in (select id from old)),
  sent as (delete from webhook_delivery where id in (select id from old))
  delete from webhook_event where id in (select id from old)`;

const countSql = `
  select (select count(*)::int from webhook_delivery where state = 1) as pending,
    (select count(*)::int from webhook_endpoint where dead_time is not null) as "deadEndpoints"`;

/** Creates the jobs; {@link PeriodicJobs.start} begins. */
export function createWebhookJobs({ pool, warn = () => {} }: WebhookJobsOptions): WebhookJobs {
  let stats: WebhookStats = { pending: 0, deadEndpoints: 0 };
  const count = async (): Promise<WebhookStats> => {
    const { rows } = await pool.query<WebhookStats>(countSql);
    return (stats = rows[0] ?? stats);
  };
  const expire = (): Promise<number> => deleteOldEvents(pool);
  const failed = (what: string) => (error: unknown) =>
    warn(`${what} webhooks failed; trying again later`, { err: error });
  const jobs = periodic([
    { run: expire, everyMs: expireEveryMs, onError: failed("deleting old") },
    { run: count, everyMs: countEveryMs, onError: failed("counting") },
  ]);
  return { ...jobs, count, expire, stats: () => stats };
}

async function deleteOldEvents(pool: Pool): Promise<number> {
  const before = firstId(new Date(Number(await databaseTime(pool)) - webhookKeptMs));
  for (let deleted = 0; ; ) {
    const { rowCount } = await pool.query(expireSql, [before, webhookKeptMs]);
    deleted += rowCount ?? 0;
    if ((rowCount ?? 0) < batch) return deleted;
  }
}
