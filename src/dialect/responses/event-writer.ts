/** The events of a streamed response as text. */
import type { GatewayError } from "../../errors.ts";
import { errorBody } from "../error-body.ts";
import type { JsonRecord } from "../json.ts";

/** Numbers the events of one stream and writes them. */
export class EventWriter {
  #next: number;

  /** @param first the number of the first event. Default 0 */
  constructor(first = 0) {
    this.#next = first;
  }

  /** The number of the next event. */
  next(): number {
    return this.#next++;
  }

  /** @param members JSON members, without braces; at least one */
  event(type: string, members: string): string {
    return `${head(type)}${this.next()},${members}}\n\n`;
  }

  /** Prepares events that differ in one text only. @param before members, without braces; at least one */
  deltas(type: string, before: JsonRecord, after = ""): DeltaWriter {
    return new DeltaWriter(this, {
      head: head(type),
      tail: `,${membersOf(before)},"delta":`,
      end: `${after}}\n\n`,
    });
  }

  /** The event that ends a stream which failed, in both shapes that clients read. */
  error(error: GatewayError): string {
    const body = errorBody(error)["error"] as JsonRecord;
    const { code, message, param } = body;
    return this.event("error", membersOf({ code, message, param, error: body }));
  }
}

/** The members of an object as JSON, without the braces. */
export function membersOf(record: JsonRecord): string {
  return JSON.stringify(record).slice(1, -1);
}

function head(type: string): string {
  return `event: ${type}\ndata: {"type":"${type}","sequence_number":`;
}

interface DeltaFrame {
  readonly head: string;
  readonly tail: string;
  readonly end: string;
}

/** Writes the deltas of one part. */
export class DeltaWriter {
  readonly #events: EventWriter;
  readonly #frame: DeltaFrame;

  constructor(events: EventWriter, frame: DeltaFrame) {
    this.#events = events;
    this.#frame = frame;
  }

  write(text: string): string {
    const { head: start, tail, end } = this.#frame;
    return start + this.#events.next() + tail + JSON.stringify(text) + end;
  }
}
