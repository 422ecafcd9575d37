/**
 * Stores the events of streamed background responses, several in a row, so that a client can read
 * them from any event on, during the generation and afterwards.
 */
import type { Pool } from "pg";
import { gatewayStopping, GatewayStopping } from "../../core/caller.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { objectMembers, writeMembers } from "../../wire/json/source.ts";
import type { Transaction } from "../../provider/task.ts";
import type { RowOf } from "../../db/row.ts";
import type { ResponseEventEntity } from "../stored/entity.ts";
import { noSuchResponse, notStreamed } from "../stored/failures.ts";
import type { BackgroundState } from "./store.ts";
import type { BackgroundTasks } from "./tasks.ts";

/** The response that events belong to. */
export interface LoggedResponse {
  readonly accountId: string;
  readonly responseId: string;
}

/** Consecutive events, with the number of the last one. */
export interface EventBatch {
  readonly last: number;
  readonly events: readonly string[];
}

/** One event. */
interface LoggedEvent {
  readonly number: number;
  readonly text: string;
}

/** Writes and reads the events of background responses. */
export interface EventLog {
  /**
   * Returns the number of the last event; -1 if there are none, because the response is not
   * streamed or its events have expired.
   */
  last(of: LoggedResponse): Promise<number>;
  /** Reads the events after a number, in order. */
  read(of: LoggedResponse, after: number): Promise<readonly LoggedEvent[]>;
  /** Writes events and wakes their readers. Writes nothing if the response was deleted. */
  write(of: LoggedResponse & { readonly taskId: string }, batch: EventBatch): Promise<void>;
  /** Writes events in a transaction; its commit wakes no reader. */
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

/**
 * Without waiting for the disk: a crash of the database that loses these events also ends the
 * response.
 */
const writeSql = `
with loose as (select set_config('synchronous_commit', 'off', true)), written as (${insertSql} returning 1)
select pg_notify('task_changed', $5) from loose`;

/** Creates the event log. */
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
      // A batch that was written again after a lost answer repeats events of an earlier one.
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

/**
 * Splits a row into events. Each ends with its only empty line, because its JSON has no line
 * breaks.
 */
function numberedEvents({ last, events }: Row): Array<[number, string]> {
  const texts = events.toString("utf8").split("\n\n").slice(0, -1);
  return texts.map((text, at) => [last - texts.length + 1 + at, `${text}\n\n`]);
}

/** The first events of a queued response. @param response JSON */
export function initialEvents(response: string): EventBatch {
  const types = ["response.created", "response.queued"];
  const events = types.map((type, number) => responseEvent(number, type, response));
  return { last: events.length - 1, events };
}

/** Formats an event of the response itself. @param response JSON */
export function responseEvent(number: number, type: string, response: string): string {
  return eventText(number, type, `{"response":${response}}`);
}

/**
 * Formats an event of the stream. @param json its members; the vendor's type and number are
 * replaced
 */
export function eventText(number: number, type: string, json: string): string {
  const own = [
    { name: "type", json: JSON.stringify(type) },
    { name: "sequence_number", json: String(number) },
  ];
  const replaced = new Set(own.map(({ name }) => name));
  const members = objectMembers(json).filter(({ name }) => !replaced.has(name));
  return `event: ${type}\ndata: ${writeMembers([...own, ...members])}\n\n`;
}

/** Options of {@link followEvents}. */
export interface FollowOptions {
  readonly events: EventLog;
  readonly tasks: Pick<BackgroundTasks, "find" | "changes">;
  readonly background: BackgroundState;
}

/** The events to follow. */
export interface FollowRequest {
  readonly accountId: string;
  readonly responseId: string;
  readonly taskId: string;
  /** Number of the last event that the client has; -1 if it has none. */
  readonly after: number;
  /**
   * Aborted when the client disconnects or the gateway stops. The response continues in either
   * case.
   */
  readonly signal: AbortSignal;
}

/** Recheck interval: finds changes whose notification was lost. */
const recheckMs = 15_000;

/** Checks that a response has events. @throws GatewayError INVALID_REQUEST if it has none */
export async function requireStreamed(of: LoggedResponse, log: EventLog): Promise<void> {
  if ((await log.last(of)) < 0) throw notStreamed(of.responseId);
}

/**
 * Yields events, several at a time, until the response has ended.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE if the gateway stops
 */
export async function* followEvents(
  { after, signal, ...of }: FollowRequest,
  { events: log, tasks, background }: FollowOptions,
): AsyncGenerator<Buffer, undefined> {
  using changes = tasks.changes(of.taskId);
  let known = after;
  for (;;) {
    // Status first: when it says that the response has ended, all events are written.
    const status = await tasks.find(of.accountId, of.taskId);
    if (status === undefined) throw noSuchResponse(of.responseId);
    const events = await log.read(of, known);
    if (events.length > 0) yield Buffer.from(events.map(({ text }) => text).join(""));
    known = events.at(-1)?.number ?? known;
    if (status.status === "completed") return;
    if (status.status === "failed" || status.status === "cancelled") {
      const json = await background.status(of.accountId, of.responseId);
      yield Buffer.from(responseEvent(known + 1, "response.failed", json.toString()));
      return;
    }
    await changes.next(recheckMs, signal);
    if (signal.reason instanceof GatewayStopping) throw gatewayStopping();
    if (signal.aborted) return;
  }
}
