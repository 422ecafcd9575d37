/**
 * Sends alerts. The ledger writes an alert once, in the transaction of the reported event. A
 * process passes it to the webhook room, in one transaction with its state, and sends its e-mails.
 * SQL: rows are claimed under locks.
 */
import type { Pool } from "pg";
import { webhookKeptMs } from "../core/limits.ts";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import { transact } from "../db/pool/transaction.ts";
import { enqueueAlert } from "../webhook/enqueue.ts";
import type { Mailer, MailOutcome } from "./mailer.ts";
import { type AlertRow, alertMessage } from "./message.ts";

/** The parts of {@link createAlertJobs}. */
export interface AlertJobsOptions {
  readonly pool: Pool;
  /** Returns the mailer; undefined if no e-mail is sent. */
  readonly mailer: (this: void) => Mailer | undefined;
  /** Logs a warning for operators. */
  readonly warn: (message: string, fields: object) => void;
  /** Called with the outcome of each e-mail. */
  readonly onEmail: (outcome: MailOutcome["kind"]) => void;
  /** Interval of both jobs. Default 2,000. */
  readonly everyMs?: number;
}

/** The jobs of a process. Every node may run them at once. */
export interface AlertJobs extends PeriodicJobs {
  /** Passes new alerts on. Returns their number. */
  handOver(): Promise<number>;
  /** Sends due e-mails. Returns the number of attempts. */
  sendEmails(): Promise<number>;
  /** Deletes expired alerts now. */
  expire(): Promise<void>;
}

/** Maximum number of alerts that one run processes. */
const batch = 20;

/** The pause after each failed attempt at an e-mail, in minutes: 8 attempts in 31 hours. */
const pauseMinutes = [1, 5, 20, 60, 240, 540, 1_000];

/** Lease of an e-mail that is being sent. Other processes do not send it meanwhile. */
const leaseSeconds = 120;

const names = `coalesce(a.name, '') as account_name, coalesce(nullif(k.name, ''), k.masked) as key_name`;

const sources = `left join account a on a.id = l.account_id
    left join api_key k on k.id = (l.facts->>'owner')::uuid`;

const sql = {
  claim: `
    select l.id, l.account_id, l.kind, l.facts, l.create_time, a.alert_url, a.alert_emails, ${names}
      from alert l ${sources}
      where l.state = 1 order by l.id limit ${batch} for update of l skip locked`,
  handOver: `update alert set state = 2, email_to = $2,
      email_due = case when $2::text[] is not null then now() end where id = $1`,
  due: `
    with due as (
      select id from alert where email_due <= now() order by email_due limit ${batch}
        for update skip locked
    ), leased as (
      update alert l set email_attempts = l.email_attempts + 1,
          email_due = now() + interval '${leaseSeconds} s'
        from due where due.id = l.id returning l.*
    )
    select l.id, l.account_id, l.kind, l.facts, l.create_time, l.email_to, l.email_attempts, ${names}
      from leased l ${sources}`,
  sent: `update alert set email_to = nullif(array_remove(email_to, $2), '{}'),
      email_due = case when array_remove(email_to, $2) <> '{}' then email_due end where id = $1`,
  again: `update alert set email_due = now() + $2 * interval '1 min' where id = $1 and email_to is not null`,
  giveUp: "update alert set email_to = null, email_due = null where id = $1",
  expire: `delete from alert
    where create_time < now() - $1 * interval '1 ms' and state = 2 and email_due is null`,
} as const;

interface ClaimedRow extends AlertRow {
  readonly alert_url: string | null;
  readonly alert_emails: string[] | null;
}

interface EmailRow extends AlertRow {
  readonly email_to: readonly string[];
  readonly email_attempts: number;
}

/** Creates the jobs; {@link PeriodicJobs.start} begins. */
export function createAlertJobs(options: AlertJobsOptions): AlertJobs {
  const { pool, warn, everyMs = 2_000 } = options;
  const handOver = (): Promise<number> => handOverNew(options);
  const sendEmails = (): Promise<number> => sendDue(options);
  const expire = async (): Promise<void> => {
    await pool.query(sql.expire, [webhookKeptMs]);
  };
  const failed = (what: string) => (error: unknown) =>
    warn(`${what} failed; trying again later`, { err: error });
  const jobs = periodic([
    { run: handOver, everyMs, onError: failed("sending alerts to webhooks") },
    { run: sendEmails, everyMs, onError: failed("sending alerts by e-mail") },
    { run: expire, everyMs: 3_600_000, onError: failed("deleting old alerts") },
  ]);
  return { ...jobs, handOver, sendEmails, expire };
}

/**
 * The webhook is enqueued in the transaction that marks the alert, so that it is one event, even if
 * the process dies.
 */
function handOverNew({ pool, mailer }: AlertJobsOptions): Promise<number> {
  return transact(pool, async (client) => {
    const { rows } = await client.query<ClaimedRow>(sql.claim);
    for (const row of rows) {
      const { id, account_id: accountId, alert_url: url, alert_emails: emails } = row;
      const { type, data } = alertMessage(row);
      if (url !== null) {
        await enqueueAlert(client, { id, accountId, url, type, data, time: row.create_time });
      }
      const emailTo = mailer() !== undefined && emails?.length ? emails : null;
      await client.query(sql.handOver, [id, emailTo]);
    }
    return rows.length;
  });
}

async function sendDue(options: AlertJobsOptions): Promise<number> {
  const { pool } = options;
  const mailer = options.mailer();
  if (mailer === undefined) return 0;
  const { rows } = await pool.query<EmailRow>(sql.due);
  await Promise.all(rows.map((row) => sendOne(options, mailer, row)));
  return rows.length;
}

/** Each recipient gets a separate e-mail, once: a recipient who has it is removed from the list. */
async function sendOne(
  { pool, warn, onEmail }: AlertJobsOptions,
  mailer: Mailer,
  row: EmailRow,
): Promise<void> {
  const { id, account_id: accountId, email_attempts: attempts } = row;
  const { subject, text } = alertMessage(row);
  let reason: string | undefined;
  for (const to of row.email_to) {
    const outcome = await mailer.send({ id, to, subject, text });
    onEmail(outcome.kind);
    if (outcome.kind !== "failed") await pool.query(sql.sent, [id, to]);
    if (outcome.kind === "refused") {
      warn("an e-mail was refused permanently", { alertId: id, accountId, reason: outcome.reason });
    }
    if (outcome.kind === "failed") ({ reason } = outcome);
  }
  if (reason === undefined) return;
  const pause = pauseMinutes[attempts - 1];
  warn("an e-mail could not be sent", { alertId: id, accountId, attempts, reason });
  if (pause === undefined) await pool.query(sql.giveUp, [id]);
  else await pool.query(sql.again, [id, pause]);
}
