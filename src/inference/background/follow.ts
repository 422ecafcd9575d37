/** Reads a response in the background as a stream, from any place on, while it is made and after. */
import { gatewayStopping, GatewayStopping } from "../../caller.ts";
import { parseRecord } from "../../dialect/json.ts";
import { noSuchResponse, notStreamed } from "../state/failures.ts";
import { type EventLog, eventText, type LoggedResponse } from "./event-log.ts";
import type { BackgroundState } from "./standing.ts";
import type { BackgroundTasks } from "./tasks.ts";

/** What {@link follow} needs. */
export interface FollowOptions {
  readonly events: EventLog;
  readonly tasks: Pick<BackgroundTasks, "find" | "changes">;
  readonly background: BackgroundState;
}

/** What to follow. */
export interface Followed {
  readonly accountId: string;
  readonly responseId: string;
  readonly taskId: string;
  /** The number of the last event that is known; -1: none. */
  readonly after: number;
  /** Aborted when the client leaves or the gateway stops: the response is made all the same. */
  readonly signal: AbortSignal;
}

/** How long is waited without looking, in milliseconds: what nobody told of is seen then. */
const lookMs = 15_000;

/** @throws GatewayError INVALID_REQUEST where a response's events are not kept */
export async function requireStreamed(of: LoggedResponse, log: EventLog): Promise<void> {
  if ((await log.last(of)) < 0) throw notStreamed(of.responseId);
}

/**
 * Yields events, several at a time, until the response has ended.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where the gateway stops
 */
export async function* follow(
  { after, signal, ...of }: Followed,
  { events: log, tasks, background }: FollowOptions,
): AsyncGenerator<Buffer, undefined> {
  using changes = tasks.changes(of.taskId);
  let known = after;
  for (;;) {
    // Asked first: an end that is seen here has all of its events before it.
    const standing = await tasks.find(of.accountId, of.taskId);
    if (standing === undefined) throw noSuchResponse(of.responseId);
    const events = await log.read(of, known);
    if (events.length > 0) yield Buffer.from(events.map(({ text }) => text).join(""));
    known = events.at(-1)?.number ?? known;
    if (standing.status === "completed") return;
    if (standing.status === "failed" || standing.status === "cancelled") {
      const json = await background.standing(of.accountId, of.responseId);
      const response = parseRecord(json.toString()) ?? {};
      yield Buffer.from(eventText(known + 1, { type: "response.failed", response }));
      return;
    }
    await changes.next(lookMs, signal);
    if (signal.reason instanceof GatewayStopping) throw gatewayStopping();
    if (signal.aborted) return;
  }
}
