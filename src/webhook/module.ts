/** Puts the webhook room together: its service for any process with the database, its sending for a server. */
import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import type { Logger } from "pino";
import { type AttemptOutcome, AttemptOutcomeSchema } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import type { WebhookConfig } from "../config/config.ts";
import { webhookDeadMs, webhookKeptMs } from "../core/limits.ts";
import type { Database } from "../db/database.ts";
import { openPool } from "../db/pool/open-pool.ts";
import { createGuardedClient, type GuardedClient } from "../http/guarded-client.ts";
import type { Metrics } from "../observe/metrics.ts";
import { type Service, serve } from "../core/contract-rules.ts";
import { createDispatcher } from "./dispatcher.ts";
import { createSecrets, type Secrets } from "./secrets.ts";
import { createWebhookService } from "./service.ts";
import type { WebhookServiceOptions } from "./access.ts";
import type { Pool } from "pg";
import { periodic, type PeriodicJobs } from "../core/async.ts";
import { databaseTime, firstId } from "../db/partition.ts";

/** Options of {@link createWebhookRoom}. */
export interface WebhookOptions {
  readonly database: Database;
  readonly config: WebhookConfig;
  /** The master key, read at its first use. */
  readonly masterKey: () => Uint8Array;
  /**
   * Called before a secret is created. Rejects if the master key is not that of the database. Default:
   * no check, for a process that has checked its key.
   */
  readonly requireMasterKey?: () => Promise<void>;
}

/** The service, and the secrets that a server signs with. */
export interface WebhookRoom {
  readonly service: Service;
  readonly secrets: Secrets;
}

/** Creates the webhook room. @param checks of accounts and of a second proof, by the account room */
export function createWebhookRoom(
  { database: { orm, taskPool: pool }, config, masterKey, requireMasterKey }: WebhookOptions,
  checks: Pick<WebhookServiceOptions, "accountExists" | "requireStepUp">,
): WebhookRoom {
  const secrets = createSecrets({ pool, masterKey, ...(requireMasterKey && { requireMasterKey }) });
  const { allowHosts } = config;
  const service = createWebhookService({ orm, pool, secrets, allowHosts, ...checks });
  return { secrets, service: serve(WebhookService, service) };
}

/** Options of {@link createWebhookSending}. */
export interface SendingOptions {
  readonly database: Database;
  /** The signing secrets. */
  readonly secrets: Secrets;
  readonly config: WebhookConfig;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** The sending of a server. */
export interface WebhookSending {
  start(): Promise<void>;
  /** Waits for attempts under way, and closes the connections. */
  stop(): Promise<void>;
}

/** The connections of the sending: its bursts must not delay callers. */
const poolMax = 4;

/** Creates the dispatcher and the jobs; {@link WebhookSending.start} begins. */
export function createWebhookSending(options: SendingOptions): WebhookSending {
  const { database, secrets, config, metrics, log } = options;
  const pool = openPool(database.url, { max: poolMax, for: "jobs" });
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const jobs = createWebhookJobs({ pool, warn });
  const dispatcher = createDispatcher({
    pool,
    url: database.url,
    client: clientOf(config),
    secrets,
    warn,
    onAttempt({ accountId, origin, result: { outcome }, isDead }) {
      metrics.webhookAttempts.inc({ outcome: outcomeWord(outcome) });
      if (isDead) {
        const hours = webhookDeadMs / 3_600_000;
        log.warn(
          { accountId, origin },
          `a webhook receiver has failed for ${hours} hours: its deliveries are parked`,
        );
      }
    },
  });
  watch(metrics, { sending: dispatcher.underWay, stats: jobs.stats });
  return {
    async start() {
      await dispatcher.start();
      jobs.start();
    },
    async stop() {
      await Promise.all([dispatcher.stop(), jobs.stop()]);
      await pool.end();
    },
  };
}

function clientOf({ allowHosts, caFile }: WebhookConfig): GuardedClient {
  if (caFile === undefined) return createGuardedClient({ allowHosts });
  const ca = [...rootCertificates, readFileSync(caFile, "utf8")];
  return createGuardedClient({ allowHosts, ca });
}

/** The lower-case word of an outcome. */
function outcomeWord(outcome: AttemptOutcome): string {
  const name = AttemptOutcomeSchema.value[outcome]?.name ?? "";
  return name.slice(AttemptOutcomeSchema.sharedPrefix?.length ?? 0).toLowerCase();
}

function watch(
  metrics: Metrics,
  read: {
    readonly sending: () => number;
    readonly stats: () => { readonly pending: number; readonly deadEndpoints: number };
  },
): void {
  metrics.gauge("uas_webhooks_sending", "Webhooks that this process is sending.", read.sending);
  metrics.gauge(
    "uas_webhooks_pending",
    "Webhooks that wait, of all processes.",
    () => read.stats().pending,
    "max",
  );
  metrics.gauge(
    "uas_webhook_endpoints_dead",
    "Webhook receivers that are given up until somebody enables them again, of all processes.",
    () => read.stats().deadEndpoints,
    "max",
  );
}

// The background jobs: old events are deleted, and pending deliveries are counted for the operator. SQL: sets of rows, in batches.

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
  /** Logs what an operator should know, without secrets. Default: nothing. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every node may run them at once. */
interface WebhookJobs extends PeriodicJobs {
  /** Deletes events that are older than they are kept, now. Returns how many. */
  expire(): Promise<number>;
  /** The last count. */
  readonly stats: () => WebhookStats;
  /** Counts now. */
  count(): Promise<WebhookStats>;
}

/** How often old events are deleted, in milliseconds. */
const expireEveryMs = 10 * 60 * 1_000;

/** How often deliveries are counted, in milliseconds. */
const countEveryMs = 15_000;

/** How many events one statement deletes: a long one would hold up others. */
const batch = 1_000;

/**
 * Attempts and delivery go with their event. What is still to be sent stays, however old, unless its receiver is dead. An
 * id begins with a time too, by which old events are found; but the database's clock may have been wrong then. $1: the
 * first id to keep, $2: the age in milliseconds.
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
