/** Requests for speech and their replies in OpenAI's form: audio, or an event stream of it. */
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { asBuffer, emptyBuffer, joinBuffers } from "../core/bytes.ts";
import { invalid } from "../core/validation.ts";
import {
  knownMembers,
  type ModelBody,
  pickMembers,
  readModel,
  readOutline,
  readText,
  textOf,
  withModel,
} from "./body-members.ts";
import type { ObjectScan } from "./json/scan.ts";
import { MediaEventsRelay, readMediaUsage } from "./media-events.ts";

/** A request for speech. */
export interface SpeechBody extends ModelBody {
  /** The characters of the text, as Unicode code points. */
  readonly characters: number;
  /** The form of the file; `mp3` where the request names none. */
  readonly format: string;
  /** How fast; 1 is as usual. */
  readonly speed: number;
}

const known = knownMembers(["model", "input", "speed", "response_format"]);

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
    // The second half of a pair is no character of its own.
    if ((text.codePointAt(at) ?? 0) > 0xffff) at++;
  }
  return count;
}

/** A streamed reply that is not an event stream. Its end is that of the connection, which tells a cut from a whole one. */
export class BytesRelay {
  readonly usage: Usage | undefined = undefined;
  readonly failed = false;
  /** Every byte is passed on as it comes. */
  readonly unfinishedBytes = 0;
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
