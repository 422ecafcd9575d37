/** Connects the parts of the alert room: the sending of a server. */
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Database } from "../db/database.ts";
import { createAlertJobs } from "./jobs.ts";
import { createMailer } from "./mailer.ts";

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

/** Creates the sending of alerts. */
export function createAlertSending({
  database: { jobPool: pool },
  config,
  metrics,
  log,
}: AlertOptions): AlertSending {
  const mailer = config.smtp && createMailer(config.smtp);
  const jobs = createAlertJobs({
    pool,
    mailer,
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
      mailer?.close();
    },
  };
}
