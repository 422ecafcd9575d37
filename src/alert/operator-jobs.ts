/**
 * Finds out what operators must be alerted of. Each process looks at its own state every few
 * seconds. A row in the database makes one process send what several of them notice. SQL: rows are
 * claimed by their writing.
 */
import type { Pool } from "pg";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import type { Condition, OperatorMessage } from "./operator-alert.ts";

/** Options of {@link createOperatorAlertJobs}. */
export interface OperatorAlertOptions {
  readonly pool: Pick<Pool, "query">;
  /** Reads what is the case in this process now. */
  readonly conditions: () => Promise<readonly Condition[]>;
  /** When the database became unreachable, in milliseconds since 1970; undefined if it answers. */
  readonly outageMs: () => number | undefined;
  readonly send: (message: OperatorMessage) => void;
  /** Interval at which an alert that lasts is sent again. */
  readonly repeatMs: () => number;
  readonly warn: (message: string, fields: object) => void;
  /** Interval of the job. Default 10 s. */
  readonly everyMs?: number;
  /** Time after which a condition that no process reports has ended. Default 45 s. */
  readonly endMs?: number;
}

/** The job of a process. Every process runs it. */
export interface OperatorAlertJobs extends PeriodicJobs {
  /** Looks once. */
  look(): Promise<void>;
}

/** Shorter outages are lines in the log only. */
const outageMsMin = 10_000;

const sql = {
  note: `
    insert into operator_alert as a (name, subject, severity, text, begin_time, seen_time, sent_time)
      values ($1, $2, $3, $4, now(), now(), now())
      on conflict (name, subject) do update set severity = excluded.severity, text = excluded.text,
        seen_time = now(), sent_time =
          case when a.sent_time <= now() - $5 * interval '1 ms' then now() else a.sent_time end
      returning sent_time = now() as is_due, begin_time = now() as is_new, begin_time`,
  end: `delete from operator_alert where seen_time < now() - $1 * interval '1 ms'
      returning name, subject, severity, text, begin_time`,
} as const;

interface NotedRow {
  readonly is_due: boolean;
  readonly is_new: boolean;
  readonly begin_time: Date;
}

interface EndedRow extends Condition {
  readonly begin_time: Date;
}

/** Creates the job; {@link PeriodicJobs.start} begins. */
export function createOperatorAlertJobs(options: OperatorAlertOptions): OperatorAlertJobs {
  const { everyMs = 10_000, warn } = options;
  const outage = new OutageAlert(options);
  const look = async (): Promise<void> => {
    if (outage.look()) return;
    for (const condition of await options.conditions()) await note(options, condition);
    await end(options);
  };
  const onError = (error: unknown): void =>
    warn("alerts of the operator could not be stored; trying again", { err: error });
  const jobs = periodic([{ run: look, everyMs, firstMs: everyMs, onError }]);
  return { ...jobs, look };
}

async function note(
  { pool, send, repeatMs }: OperatorAlertOptions,
  condition: Condition,
): Promise<void> {
  const { name, subject, severity, text } = condition;
  const values = [name, subject, severity, text, repeatMs()];
  const { rows } = await pool.query<NotedRow>(sql.note, values);
  const [row] = rows;
  if (row === undefined || !row.is_due) return;
  const event = row.is_new ? "begun" : "lasting";
  send({ ...condition, event, beginMs: row.begin_time.getTime(), nowMs: Date.now() });
}

async function end({ pool, send, endMs = 45_000 }: OperatorAlertOptions): Promise<void> {
  const { rows } = await pool.query<EndedRow>(sql.end, [endMs]);
  for (const { begin_time: begin, ...condition } of rows) {
    send({ ...condition, event: "ended", beginMs: begin.getTime(), nowMs: Date.now() });
  }
}

/**
 * The alert of an unreachable database. It cannot be stored, so each process sends it by itself,
 * once.
 */
class OutageAlert {
  readonly #options: Pick<OperatorAlertOptions, "outageMs" | "send">;
  #sentMs: number | undefined;

  constructor(options: Pick<OperatorAlertOptions, "outageMs" | "send">) {
    this.#options = options;
  }

  /** Sends what has to be sent. @returns whether the database is unreachable */
  look(): boolean {
    const { outageMs } = this.#options;
    const beginMs = outageMs();
    if (beginMs !== undefined) {
      if (this.#sentMs === undefined && Date.now() - beginMs >= outageMsMin) {
        this.#sentMs = beginMs;
        this.#send("begun", beginMs);
      }
      return true;
    }
    if (this.#sentMs !== undefined) this.#send("ended", this.#sentMs);
    this.#sentMs = undefined;
    return false;
  }

  #send(event: "begun" | "ended", beginMs: number): void {
    const text =
      "A gateway process cannot reach its database: calls are refused with 503. Look at the database server and the network between them.";
    const about = { name: "database_unreachable", subject: "", severity: "critical" } as const;
    this.#options.send({ ...about, text, event, beginMs, nowMs: Date.now() });
  }
}
