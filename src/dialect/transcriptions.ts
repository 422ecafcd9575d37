/** Replies with the text of a recording in OpenAI's form: JSON, subtitles, or an event stream. */
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { isRecord } from "./json/value.ts";
import { ObjectScan } from "./json/scan.ts";
import { MediaEventsRelay, readMediaUsage } from "./media-events.ts";
import { BytesRelay } from "./speech.ts";

/** What a complete reply tells. */
export interface RecordingText {
  /** Tokens; `undefined`: it tells none. */
  readonly usage: Usage | undefined;
  /** The length of the recording; `undefined`: it does not tell. */
  readonly seconds: number | undefined;
  /** Bytes of the text. */
  readonly textBytes: number;
}

/** Reads a reply in JSON: `usage` of tokens or of a duration, and `duration` of verbose ones. */
export function readRecordingText(body: Buffer): RecordingText {
  const scan = new ObjectScan().scan(body, 0, body.length);
  return { ...readUsage(scan), textBytes: scan.stringBytes("text") };
}

function readUsage(scan: ObjectScan): Pick<RecordingText, "usage" | "seconds"> {
  const told = scan.value("usage");
  const isDuration = isRecord(told) && told["type"] === "duration";
  return {
    usage: isDuration ? undefined : readMediaUsage(told),
    seconds: secondsOf(isDuration ? told["seconds"] : scan.value("duration")),
  };
}

/** A length that can be charged. Some vendors write it as text. */
function secondsOf(value: unknown): number | undefined {
  const seconds = typeof value === "string" ? Number.parseFloat(value) : value;
  return typeof seconds === "number" && seconds > 0 && seconds < 1e6 ? seconds : undefined;
}

/** Relays plain texts and subtitles. */
export class TranscriptTextRelay extends BytesRelay {
  override get textBytes(): number {
    return this.bytes;
  }

  /** A recording without speech has an empty text. */
  override end(): Buffer {
    const last = super.end();
    this.finished = this.done = true;
    return last;
  }
}

/** Relays events: `transcript.text.delta` and, with the usage, `transcript.text.done`. */
export class TranscriptEventsRelay extends MediaEventsRelay {
  /** The length of the recording, where the vendor tells it. */
  #seconds: number | undefined;

  override get units(): { readonly seconds: number } | undefined {
    return this.#seconds === undefined ? undefined : { seconds: this.#seconds };
  }

  protected onEvent(type: string, event: ObjectScan): void {
    this.textBytes += event.stringBytes("delta");
    if (type !== "transcript.text.done") return;
    const { usage, seconds } = readUsage(event);
    this.usage = usage;
    this.#seconds = seconds;
    this.textBytes = Math.max(this.textBytes, event.stringBytes("text"));
    this.finished = this.done = true;
  }
}
