/** Requests for speech in OpenAI's form, charged by character, second or token. */
import type { UnitUsage } from "../../billing/prices/pricing.ts";
import type { PriceConfig } from "../../config/config.ts";
import { joinBuffers } from "../../core/bytes.ts";
import { UnreadableReplyError } from "../../dialect/json/value.ts";
import {
  BytesRelay,
  readSpeechBody,
  type SpeechBody,
  SpeechEventsRelay,
} from "../../dialect/speech.ts";
import { type AudioFormat, audioSeconds } from "../../vendor/media-length.ts";
import { speechSecondsMax, speechSecondsTypical } from "../../vendor/openai/params.ts";
import type { VendorReply } from "../../vendor/reply.ts";
import type { Delivered, Metered } from "../metering.ts";
import type { PlannedRoute, ReplyStream, RequestSummary, WholeReply } from "../pipeline/adapter.ts";
import { AudioRequest, meterAudio, nothingMetered } from "./audio-request.ts";
import type { MediaInput } from "./media-adapter.ts";

/** Output tokens of a second of speech: OpenAI's models make 1,250 a minute. */
const tokensPerSecond = 21;

/** A request for speech that has been read. */
export class SpeechRequest extends AudioRequest {
  override readonly operation = "speak";
  readonly text: RequestSummary;
  readonly body: SpeechBody;

  /** @throws GatewayError INVALID_REQUEST */
  constructor(input: MediaInput) {
    super(input);
    this.body = readSpeechBody(input.request.body);
    const { model, bytes, characters, speed } = this.body;
    const seconds = speechSecondsMax(characters, speed);
    this.text = {
      model,
      stream: true,
      maxOutputTokens: seconds * tokensPerSecond,
      choices: 1,
      bytes: bytes.length,
      units: { characters, seconds },
    };
  }

  whole(): WholeReply<Buffer> {
    throw new UnreadableReplyError("JSON instead of audio");
  }

  stream(
    _planned: PlannedRoute,
    { headers }: VendorReply,
    price?: PriceConfig,
  ): ReplyStream<Buffer> {
    const { characters, format } = this.body;
    if ((headers["content-type"] ?? "").startsWith("text/event-stream")) {
      return new SpeechEvents(characters);
    }
    if (price?.second === undefined) return new SpeechAudio(characters, undefined);
    // Without a format in the request, it is the vendor that chooses.
    const isWav = /^audio\/(?:x-)?wav/.test(headers["content-type"] ?? "");
    return new SpeechAudio(characters, isWav ? "wav" : (format as AudioFormat));
  }

  /** The text is charged once it was sent; seconds and tokens as far as there is audio. */
  override meter(delivered: Delivered): Metered {
    const { units, inputTokens = 0, isInputOwed } = delivered;
    if (units === undefined && isInputOwed !== true) return nothingMetered;
    const { characters, speed } = this.body;
    const typical = units === undefined ? 0 : speechSecondsTypical(characters, speed);
    const seconds = units?.seconds ?? typical;
    return meterAudio(delivered, {
      seconds,
      isMeasured: units?.seconds !== undefined,
      tokens: { inputTokens, outputTokens: Math.ceil(seconds * tokensPerSecond) },
      units: { characters },
    });
  }
}

/** Longer audio is not kept for its length, which is then estimated. */
const measuredBytesMax = 32 * 1024 * 1024;

/** Audio, kept for its length where a second has a price. */
class SpeechAudio extends BytesRelay {
  readonly #characters: number;
  readonly #format: AudioFormat | undefined;
  #kept: Buffer[] = [];

  /** @param format `undefined`: its length does not matter */
  constructor(characters: number, format: AudioFormat | undefined) {
    super();
    this.#characters = characters;
    this.#format = format;
  }

  override push(pieces: readonly Buffer[]): Buffer {
    const piece = super.push(pieces);
    if (this.#format !== undefined && this.bytes <= measuredBytesMax) this.#kept.push(piece);
    return piece;
  }

  get units(): UnitUsage | undefined {
    if (this.bytes === 0) return undefined;
    const seconds = this.#seconds();
    return { characters: this.#characters, ...(seconds !== undefined && { seconds }) };
  }

  #seconds(): number | undefined {
    if (this.#format === undefined || this.bytes > measuredBytesMax) return undefined;
    return audioSeconds(joinBuffers(this.#kept), this.#format);
  }
}

class SpeechEvents extends SpeechEventsRelay {
  readonly #characters: number;

  constructor(characters: number) {
    super();
    this.#characters = characters;
  }

  override get units(): UnitUsage | undefined {
    return this.bytes === 0 ? undefined : { characters: this.#characters };
  }
}
