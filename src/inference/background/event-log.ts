/** The events of responses in the background, for those who read them as streams: written while a response is made,
 * and read from any place on. Several stand in one row. */
import type { Pool } from "pg";
import { gatewayStopping, GatewayStopping } from "../../core/caller.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { parseRecord, type JsonRecord } from "../../dialect/json/value.ts";
import type { Transaction } from "../../vendor/task.ts";
import type { RowOf } from "../../db/row.ts";
import type { ResponseEventEntity } from "../entity.ts";
import { noSuchResponse, notStreamed } from "../state/failures.ts";
import type { BackgroundState } from "./store.ts";
import type { BackgroundTasks } from "./tasks.ts";

/** Whose events. */
export interface LoggedResponse {
  readonly accountId: string;
  readonly responseId: string;
}

/** Events as they are written, with the number of the last one. */
export interface EventBatch {
  readonly last: number;
  readonly events: readonly string[];
}

/** One event. */
interface LoggedEvent {
  readonly number: number;
  readonly text: string;
}

/** Keeps them. */
export interface EventLog {
  /** The number of the last one; -1: there are none, so the response is not read as a stream, or not any more. */
  last(of: LoggedResponse): Promise<number>;
  /** Those after a number, in order. */
  read(of: LoggedResponse, after: number): Promise<readonly LoggedEvent[]>;
  /** Writes some, and wakes who reads them. Of a response that was deleted nothing is written. */
  write(of: LoggedResponse & { readonly taskId: string }, batch: EventBatch): Promise<void>;
  /** Writes some in a transaction; its commit wakes nobody. */
  writeIn(transaction: Transaction, of: LoggedResponse, batch: EventBatch): Promise<void>;
}

const lastSql = `select coalesce(max(last), -1)::int as last from response_event
  where account_id = $1 and response_id = $2`;

const readSql = `select last, events from response_event
  where account_id = $1 and response_id = $2 and last > $3 order by last`;

const insertSql = `
insert into response_event (account_id, response_id, last, events)
  select $1, $2, $3, $4 where exists (select from stored_response where account_id = $1 and id = $2)
  on conflict do nothing`;

/** What a crash of the database loses of these is lost with the process that makes the response: nobody waits for
 * the disk. */
const writeSql = `
with loose as (select set_config('synchronous_commit', 'off', true)), written as (${insertSql} returning 1)
select pg_notify('task_changed', $5) from loose`;

/** Makes it. */
export function createEventLog(pool: Pick<Pool, "query">): EventLog {
  return {
    async last({ accountId, responseId }) {
      const { rows } = await mapDatabaseLoss(
        pool.query<{ last: number }>(lastSql, [accountId, responseId]),
      );
      return rows[0]?.last ?? -1;
    },

    async read({ accountId, responseId }, after) {
      const found = pool.query<Row>(readSql, [accountId, responseId, after]);
      const { rows } = await mapDatabaseLoss(found);
      // A batch that was written again after a lost answer has some that an earlier one has, too.
      const seen = new Map(rows.flatMap(numberedEvents));
      return [...seen]
        .filter(([number]) => number > after)
        .toSorted(([a], [b]) => a - b)
        .map(([number, text]) => ({ number, text }));
    },

    async write({ accountId, responseId, taskId }, { last, events }) {
      const values = [accountId, responseId, last, Buffer.from(events.join("")), taskId];
      await pool.query(writeSql, values);
    },

    async writeIn(transaction, { accountId, responseId }, { last, events }) {
      const values = [accountId, responseId, last, Buffer.from(events.join(""))];
      await transaction.query(insertSql, values);
    },
  };
}

type Row = RowOf<typeof ResponseEventEntity, "last" | "events">;

/** Each event ends with an empty line, and has no other: its JSON has no line breaks. */
function numberedEvents({ last, events }: Row): Array<[number, string]> {
  const texts = events.toString("utf8").split("\n\n").slice(0, -1);
  return texts.map((text, at) => [last - texts.length + 1 + at, `${text}\n\n`]);
}

/** The first events of a response that waits for its turn. */
export function initialEvents(response: JsonRecord): EventBatch {
  const types = ["response.created", "response.queued"];
  const events = types.map((type, number) => eventText(number, { type, response }));
  return { last: events.length - 1, events };
}

/** An event as text. */
export function eventText(number: number, event: JsonRecord & { readonly type: string }): string {
  const { type, sequence_number: _vendors, ...members } = event;
  const json = JSON.stringify({ type, sequence_number: number, ...members });
  return `event: ${type}\ndata: ${json}\n\n`;
}

/* Reads a response in the background as a stream, from any place on, while it is made and after. */

/** What {@link followEvents} needs. */
export interface FollowOptions {
  readonly events: EventLog;
  readonly tasks: Pick<BackgroundTasks, "find" | "changes">;
  readonly background: BackgroundState;
}

/** What to follow. */
export interface FollowRequest {
  readonly accountId: string;
  readonly responseId: string;
  readonly taskId: string;
  /** The number of the last event that is known; -1: none. */
  readonly after: number;
  /** Aborted when the client leaves or the gateway stops: the response is made all the same. */
  readonly signal: AbortSignal;
}

/** How long is waited without looking, in milliseconds: what nobody told of is seen then. */
const recheckMs = 15_000;

/** @throws GatewayError INVALID_REQUEST where a response's events are not kept */
export async function requireStreamed(of: LoggedResponse, log: EventLog): Promise<void> {
  if ((await log.last(of)) < 0) throw notStreamed(of.responseId);
}

/**
 * Yields events, several at a time, until the response has ended.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where the gateway stops
 */
export async function* followEvents(
  { after, signal, ...of }: FollowRequest,
  { events: log, tasks, background }: FollowOptions,
): AsyncGenerator<Buffer, undefined> {
  using changes = tasks.changes(of.taskId);
  let known = after;
  for (;;) {
    // Asked first: an end that is seen here has all of its events before it.
    const status = await tasks.find(of.accountId, of.taskId);
    if (status === undefined) throw noSuchResponse(of.responseId);
    const events = await log.read(of, known);
    if (events.length > 0) yield Buffer.from(events.map(({ text }) => text).join(""));
    known = events.at(-1)?.number ?? known;
    if (status.status === "completed") return;
    if (status.status === "failed" || status.status === "cancelled") {
      const json = await background.status(of.accountId, of.responseId);
      const response = parseRecord(json.toString()) ?? {};
      yield Buffer.from(eventText(known + 1, { type: "response.failed", response }));
      return;
    }
    await changes.next(recheckMs, signal);
    if (signal.reason instanceof GatewayStopping) throw gatewayStopping();
    if (signal.aborted) return;
  }
}
