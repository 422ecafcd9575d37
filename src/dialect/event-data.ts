/** The data of a stream's events as text: what the decoders read. */
import { nothing } from "../bytes.ts";
import { eventBytesMax } from "../config/limits.ts";
import { type EventPlace, EventSplitter } from "./event-stream.ts";

/** Reads a stream piece by piece. Keeps the incomplete rest of a read for the next one. */
export class EventDataReader {
  readonly #splitter = new EventSplitter(eventBytesMax);

  /** What has arrived of an event that is not complete. */
  get rest(): Buffer | undefined {
    return this.#splitter.rest;
  }

  /**
   * Gives the data of each event that `pieces` complete, in order. Events without data are passed over.
   *
   * @throws EventTooLongError
   */
  read(pieces: readonly Buffer[], onData: (data: string) => void): void {
    const source = this.#splitter.begin(pieces);
    let at = 0;
    while (at < source.length) {
      const place = this.#splitter.next(at);
      if (place === undefined) break;
      at = place.end;
      if (place.dataLines > 0) onData(dataOf(source, place));
    }
    this.#splitter.finish(at, nothing);
  }
}

function dataOf(source: Buffer, { dataLines, dataStart, dataEnd, start, end }: EventPlace): string {
  return dataLines === 1
    ? source.toString("utf8", dataStart, dataEnd)
    : dataLinesOf(source.toString("utf8", start, end)).join("\n");
}

/** The values of an event's `data` lines. More than one is legal, though no vendor does it. */
export function dataLinesOf(event: string): string[] {
  return event
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(line[5] === " " ? 6 : 5));
}
