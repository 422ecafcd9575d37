/**
 * Speech and recordings in OpenAI's form. Requests for speech, whose replies are audio or an event
 * stream of it; replies with the text of a recording: JSON, subtitles, or an event stream.
 */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { asBuffer, emptyBuffer, joinBuffers } from "../../core/bytes.ts";
import { invalid } from "../../core/validation.ts";
import {
  knownMembers,
  type ModelBody,
  pickMembers,
  readModel,
  readOutline,
  readText,
  textOf,
  withModel,
} from "../body-members.ts";
import { refuseStored } from "../features/guard.ts";
import { ObjectScan } from "../../wire/json/scan.ts";
import { isRecord } from "../../wire/json/value.ts";
import { MediaEventsRelay, readMediaUsage } from "./media-events.ts";
import { classed, namesToCheck } from "../features/member-class.ts";
import { nothingUnfinished } from "../../wire/sse/event-stream.ts";

/** A request for speech. */
export interface SpeechBody extends ModelBody {
  /** The characters of the text, as Unicode code points. */
  readonly characters: number;
  /** The format of the file; `mp3` if the request names none. */
  readonly format: string;
  /** Speed; 1 is normal. */
  readonly speed: number;
}

/** The members of a request for speech (R-TXT-13). */
export const speechMembers = {
  ...classed("free", "input instructions model response_format speed stream_format"),
  ...classed("stored object", "voice"),
} as const;

/** The members below them: the id of a voice of the operator. */
export const speechNested = classed("stored object", "id");

/** The fields of forms with recordings. */
export const recordingMembers = classed(
  "free",
  `
  chunking_strategy file include keywords known_speaker_names known_speaker_references language
  languages model prompt response_format stream temperature timestamp_granularities
  `,
);

/** The members below them. */
export const recordingNested = classed(
  "free",
  "prefix_padding_ms silence_duration_ms threshold type",
);

const known = knownMembers([
  ...["model", "input", "speed", "response_format"],
  ...namesToCheck(speechMembers),
]);

/**
 * Reads a request for speech.
 *
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function readSpeechBody(body: Uint8Array): SpeechBody {
  const bytes = asBuffer(body);
  const members = pickMembers(readOutline(bytes), known);
  const model = readModel(bytes, members, "model");
  const speed: unknown = JSON.parse(textOf(bytes, members, "speed") ?? "1");
  if (typeof speed !== "number" || speed < 0.25 || speed > 4) {
    throw invalid("speed", '"speed" must be a number from 0.25 to 4');
  }
  if (textOf(bytes, members, "voice")?.startsWith("{")) {
    throw refuseStored("voice", "send the name of a voice");
  }
  const format: unknown = JSON.parse(textOf(bytes, members, "response_format") ?? '"mp3"');
  if (typeof format !== "string")
    throw invalid("response_format", '"response_format" must be text');
  return {
    ...withModel(bytes, members, model),
    characters: codePoints(readText(bytes, members, "input")),
    format,
    speed,
  };
}

/** The number of Unicode code points. */
export function codePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++, count++) {
    // The second half of a pair is not a separate character.
    if ((text.codePointAt(at) ?? 0) > 0xffff) at++;
  }
  return count;
}

/**
 * A streamed reply that is not an event stream. It ends with the connection, which distinguishes a
 * cut reply from a whole one.
 */
export class BytesRelay {
  readonly usage: Usage | undefined = undefined;
  readonly failed = false;
  readonly unfinished = nothingUnfinished;
  finished = false;
  done = false;
  /** Bytes so far. */
  bytes = 0;

  get textBytes(): number {
    return 0;
  }

  push(pieces: readonly Buffer[]): Buffer {
    const piece = joinBuffers(pieces);
    this.bytes += piece.length;
    return piece;
  }

  end(): Buffer {
    this.finished = this.done = this.bytes > 0;
    return emptyBuffer;
  }

  /** Bytes have no place for an error: the connection is broken off. */
  errorEvent(): Buffer {
    return emptyBuffer;
  }

  stop(): Buffer {
    return emptyBuffer;
  }
}

/** Relays speech as events: `speech.audio.delta` and, with the usage, `speech.audio.done`. */
export class SpeechEventsRelay extends MediaEventsRelay {
  /** Bytes of audio so far, in base64. */
  bytes = 0;

  protected onEvent(type: string, event: ObjectScan): void {
    this.bytes += event.stringBytes("audio");
    if (!type.endsWith(".done")) return;
    this.usage = readMediaUsage(event.value("usage"));
    this.finished = this.done = true;
  }
}

/** Content of a complete reply. */
interface RecordingText {
  /** Tokens; undefined if not reported. */
  readonly usage: Usage | undefined;
  /** Length of the recording; undefined if not reported. */
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
  /** Length of the recording, if the vendor reports it. */
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
