/** Writes the events of a response down while it is made, a few times a second. */
import { type JsonRecord, textAt } from "../../dialect/json.ts";
import type { Transaction } from "../../vendor/task.ts";
import {
  begunEvents,
  type EventBatch,
  type EventLog,
  eventText,
  type LoggedResponse,
} from "./event-log.ts";

/** How long events wait for others, in milliseconds: each writing is a commit, and wakes readers. */
const gatherMs = 100;

/** Those that begin a response: it has begun long before its vendor says so. Those that end it are told with what
 * is kept of it. */
const own = new Set([
  "response.created",
  "response.queued",
  "response.in_progress",
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);

/** What a {@link Recorder} needs. */
export interface RecorderOptions {
  readonly log: EventLog;
  readonly of: LoggedResponse & { readonly taskId: string };
  /** Told where events could not be written: they are tried again with the next. */
  readonly warn: (message: string, fields: object) => void;
}

/** Numbers events and writes them. {@link close} it. */
export class Recorder {
  readonly #options: RecorderOptions;
  #next: number;
  /** What is not written yet. */
  #pending: string[] = [];
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  /** @param last the number of the last event that is written */
  constructor(options: RecorderOptions, last: number) {
    this.#options = options;
    this.#next = last + 1;
  }

  /** The response is being made; told once, however many vendors are asked. */
  begin(begun: JsonRecord): void {
    if (this.#next > begunEvents(begun).last + 1) return;
    const response = { ...begun, status: "in_progress" };
    this.#add({ type: "response.in_progress", response });
  }

  /** Takes an event of the vendor's. */
  add(event: JsonRecord): void {
    const type = textAt(event, "type");
    if (type !== "" && !own.has(type)) this.#add({ ...event, type });
  }

  /** Writes what is left, and the end, in the transaction that ends the response; it may be repeated. */
  async finish(transaction: Transaction, response: JsonRecord): Promise<void> {
    await this.#written();
    const type = `response.${textAt(response, "status")}`;
    const events = [...this.#pending, eventText(this.#next, { type, response })];
    const { log, of } = this.#options;
    await log.writeIn(transaction, of, { last: this.#next, events });
  }

  /** Writes what is left. Never fails. */
  async close(): Promise<void> {
    await this.#written();
    await this.#write();
  }

  #add(event: JsonRecord & { readonly type: string }): void {
    this.#pending.push(eventText(this.#next++, event));
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    }, gatherMs).unref();
  }

  async #written(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
  }

  async #write(): Promise<void> {
    const events = this.#pending;
    if (events.length === 0) return;
    const batch: EventBatch = { last: this.#next - 1, events: [...events] };
    const { log, of, warn } = this.#options;
    try {
      await log.write(of, batch);
      this.#pending = this.#pending.slice(batch.events.length);
    } catch (error) {
      warn("events of a response could not be written", { responseId: of.responseId, err: error });
    }
  }
}
