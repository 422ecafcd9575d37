/**
 * Connects the parts of the webhook room: its service for any process with the database, its
 * sending for a server.
 */
import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import type { Logger } from "pino";
import { type AttemptOutcome, AttemptOutcomeSchema } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import type { WebhookConfig } from "../config/config.ts";
import { webhookDeadMs } from "../core/limits.ts";
import type { Database } from "../db/database.ts";
import { openPool } from "../db/pool/open-pool.ts";
import { createGuardedClient, type GuardedClient } from "../http/guarded-client.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Traces } from "../observe/traces/traces.ts";
import { type Service, serve } from "../core/contract-rules.ts";
import { createDispatcher } from "./dispatcher.ts";
import { createSecrets, type Secrets } from "./secrets.ts";
import { createWebhookService } from "./service.ts";
import type { WebhookServiceOptions } from "./access.ts";
import { traceAttempt } from "./attempt-trace.ts";
import { createWebhookJobs } from "./jobs.ts";

/** Options of {@link createWebhookRoom}. */
export interface WebhookOptions {
  readonly database: Database;
  readonly config: WebhookConfig;
  /** The master key, read at its first use. */
  readonly masterKey: () => Uint8Array;
  /**
   * Called before a secret is created. Rejects if the master key is not the key of the database. No
   * check by default, for a process that has checked its key.
   */
  readonly requireMasterKey?: () => Promise<void>;
}

/** The service, and the secrets that a server signs with. */
export interface WebhookRoom {
  readonly service: Service;
  readonly secrets: Secrets;
}

/**
 * Creates the webhook room. @param checks of accounts and of a second proof, by the account room
 */
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
  /** Undefined if no collector is named. */
  readonly traces: Traces | undefined;
  readonly log: Logger;
}

/** The sending of a server. */
export interface WebhookSending {
  start(): Promise<void>;
  /** Waits for attempts in progress, and closes the connections. */
  stop(): Promise<void>;
}

/** The connections of the sending: its bursts must not delay callers. */
const poolMax = 4;

/** Creates the dispatcher and the jobs; {@link WebhookSending.start} begins. */
export function createWebhookSending(options: SendingOptions): WebhookSending {
  const { database, secrets, config, metrics, traces, log } = options;
  const pool = openPool(database.url, { max: poolMax, for: "jobs" });
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const jobs = createWebhookJobs({ pool, warn });
  const dispatcher = createDispatcher({
    pool,
    url: database.url,
    client: clientOf(config),
    secrets,
    warn,
    onAttempt(finished) {
      const { accountId, origin, result, isDead } = finished;
      const { outcome } = result;
      traceAttempt(traces, finished, outcomeWord(outcome));
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
  metrics.gauge("uas_webhooks_sending", read.sending);
  metrics.gauge("uas_webhooks_pending", () => read.stats().pending);
  metrics.gauge("uas_webhook_endpoints_dead", () => read.stats().deadEndpoints);
}
