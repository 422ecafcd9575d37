/** The events of a response in the background, as its vendor or its translation sends them. */
import { eventBytesMax } from "../../config/limits.ts";
import { type JsonRecord, parseRecord, recordAt, textAt } from "../../dialect/json.ts";
import { EventSplitter } from "../../dialect/event-stream.ts";
import { failureOf } from "../../dialect/responses/ending.ts";
import { ErrorCode } from "../../errors.ts";
import { TaskRefused } from "../../vendor/task.ts";

const endings = new Set(["response.completed", "response.incomplete"]);
const failures = new Set(["response.failed", "error"]);

/** Gathers what becomes of a response. */
export class ResponseEvents {
  readonly #splitter = new EventSplitter(eventBytesMax);
  readonly #onEvent: (event: JsonRecord) => void;
  #ended: JsonRecord | undefined;

  /** @param onEvent told of each event, in order */
  constructor(onEvent: (event: JsonRecord) => void) {
    this.#onEvent = onEvent;
  }

  /** Takes whole events, or a whole response. @throws TaskRefused where the vendor failed */
  add(bytes: Buffer): void {
    // A vendor that was asked for a stream and does not know how.
    if (bytes[0] === 0x7b) return this.#end(parseRecord(bytes.toString("utf8")) ?? {});
    const source = this.#splitter.begin([bytes]);
    let at = 0;
    for (let place = this.#splitter.next(at); place; place = this.#splitter.next(at)) {
      at = place.end;
      this.#event(parseRecord(source.toString("utf8", place.dataStart, place.dataEnd)) ?? {});
    }
    this.#splitter.finish(at, bytes);
  }

  /** The vendor's own id of the response; empty: it told none, or it has not ended. */
  get id(): string {
    return this.#ended === undefined ? "" : textAt(this.#ended, "id");
  }

  /** The response. @throws TaskRefused where none came */
  ended(): JsonRecord {
    if (this.#ended !== undefined) return this.#ended;
    throw new TaskRefused("upstream_error", "The model's vendor answered something unusable");
  }

  #event(event: JsonRecord): void {
    const type = textAt(event, "type");
    const response = recordAt(event, "response");
    if (endings.has(type) && response !== undefined) this.#ended = response;
    if (failures.has(type)) throw failed(response ?? event);
    this.#onEvent(event);
  }

  #end(response: JsonRecord): void {
    if (textAt(response, "status") === "failed") throw failed(response);
    this.#ended = response;
  }
}

function failed(record: JsonRecord): TaskRefused {
  const { code, message } = failureOf(record);
  const isCallers = code === ErrorCode.INVALID_REQUEST;
  return new TaskRefused(isCallers ? "invalid_parameters" : "upstream_error", message);
}
