/** Connects the parts of the alert room: the sending of a server. */
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { liveClient } from "../core/derived.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Database } from "../db/database.ts";
import { createAlertJobs } from "./jobs.ts";
import { createMailer } from "./mailer.ts";
import { OperatorChannels, type OperatorDelivery } from "./operator-channels.ts";
import { createOperatorAlertJobs, type OperatorAlertOptions } from "./operator-jobs.ts";

/** Options of {@link createAlertSending}. */
export interface AlertOptions {
  readonly database: Pick<Database, "jobPool">;
  readonly config: Pick<Config, "smtp">;
  readonly metrics: Pick<Metrics, "alertEmails">;
  readonly log: Logger;
}

/** The sending of a server. */
export interface AlertSending {
  start(): Promise<void>;
  /** Waits for work in progress, and closes the connections. */
  stop(): Promise<void>;
}

/** Options of {@link createOperatorAlerts}. */
export interface OperatorAlertsOptions {
  readonly database: Pick<Database, "jobPool" | "outage">;
  readonly config: Pick<Config, "smtp" | "alerts">;
  readonly metrics: Pick<Metrics, "operatorAlerts">;
  readonly conditions: OperatorAlertOptions["conditions"];
  readonly log: Logger;
}

/** The alerts of operators. */
export interface OperatorAlerts extends AlertSending {
  /** Sends a test message to each address. */
  test(): Promise<readonly OperatorDelivery[]>;
}

/**
 * The repeat without addresses to send to: 100 years, because PostgreSQL has no later timestamp for
 * the largest number.
 */
export const neverMs = 100 * 365 * 24 * 3_600_000;

/** Creates the alerts of operators. */
export function createOperatorAlerts(options: OperatorAlertsOptions): OperatorAlerts {
  const { config, metrics, log, conditions, database } = options;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const mailer = liveClient(() => config.smtp, createMailer);
  const channels = new OperatorChannels({
    addresses: () => config.alerts,
    mailer: mailer.current,
    warn,
    onDelivery: (outcome) => metrics.operatorAlerts.inc({ outcome }),
  });
  const jobs = createOperatorAlertJobs({
    pool: database.jobPool,
    conditions,
    outageMs: () => database.outage.sinceMs,
    send: (message) => channels.post(message),
    repeatMs: () => config.alerts?.repeat ?? neverMs,
    warn,
  });
  return {
    start() {
      jobs.start();
      return Promise.resolve();
    },
    async stop() {
      await jobs.stop();
      await mailer.close();
    },
    test: () => channels.test(Date.now()),
  };
}

/** Creates the sending of alerts. */
export function createAlertSending({
  database: { jobPool: pool },
  config,
  metrics,
  log,
}: AlertOptions): AlertSending {
  const mailer = liveClient(() => config.smtp, createMailer);
  const jobs = createAlertJobs({
    pool,
    mailer: mailer.current,
    warn: (message, fields) => log.warn(fields, message),
    onEmail: (outcome) => metrics.alertEmails.inc({ outcome }),
  });
  return {
    start() {
      jobs.start();
      return Promise.resolve();
    },
    async stop() {
      await jobs.stop();
      await mailer.close();
    },
  };
}
